import { parseTaskId, type Role, roles, type TaskId } from '../../machines/task.ts';

/** A link never starts work. */
export type AgentUrl =
  | { readonly kind: 'task'; readonly taskId: TaskId }
  | { readonly kind: 'run'; readonly role: Role; readonly taskId: TaskId };

const maxLength = 256;
const allowed = /^[A-Za-z0-9_/.:-]+$/;

/**
 * Exactly `agent://task/<id>` or `agent://run/<role>/<id>`, else null. It matches text instead of
 * using URL, which repairs case, dots, white space and user info, and so would accept more.
 */
export const parseAgentUrl = (text: string): AgentUrl | null => {
  if (text.length > maxLength || !allowed.test(text)) return null;
  const [scheme, empty, kind, ...rest] = text.split('/');
  const id = rest.pop();
  const taskId = id === undefined ? null : parseTaskId(id);
  if (scheme !== 'agent:' || empty !== '' || taskId === null) return null;
  if (kind === 'task') return rest.length === 0 ? { kind, taskId } : null;
  const role = roles.find((known) => known === rest[0]);
  return kind === 'run' && role !== undefined && rest.length === 1 ? { kind, role, taskId } : null;
};
