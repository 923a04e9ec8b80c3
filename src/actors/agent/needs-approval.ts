/** The names in `require_approval` that a call of an assistant falls under. */
const approvalsByTool: Readonly<Record<string, readonly string[]>> = {
  read: ['read'],
  edit: ['edit', 'write'],
  delete: ['edit', 'write', 'bash'],
  move: ['edit', 'write', 'bash'],
  bash: ['bash'],
  grep: ['grep', 'find'],
  think: [],
};

/** A call of an unknown kind needs approval where any call does. */
export const callNeedsApproval = (tool: string, approvals: readonly string[]): boolean =>
  (Object.hasOwn(approvalsByTool, tool) ? (approvalsByTool[tool] ?? []) : approvals).some((name) =>
    approvals.includes(name),
  );
