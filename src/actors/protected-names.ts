/** Names in a workspace that other programs obey, or that are the tracker's: agents may read them and not write to them. */
export const protectedNames: readonly string[] = [
  '.git',
  '.beads',
  '.agent',
  '.gitmodules',
  '.vscode',
  '.idea',
  '.mcp.json',
  '.claude',
  '.codex',
  '.gemini',
  '.cursor',
  '.opencode',
  '.envrc',
  '.husky',
];
