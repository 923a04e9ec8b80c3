import { isNestedDeeper } from '../../machines/json.ts';
import { messageOf } from '../../machines/message-of.ts';
import { fileIssueSchema, type Issue } from './issue.ts';

/** `other`: the `_schema` header, or a `_type` that is no task; kept word for word. */
export type ParsedLine =
  | { readonly kind: 'issue'; readonly issue: Issue }
  | { readonly kind: 'other' }
  | { readonly kind: 'broken'; readonly problem: string };

const isOther = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  ('_schema' in value ||
    ('_type' in value && value._type !== 'issue') ||
    ('_type' in value && !('id' in value)));

/**
 * The task in a line that was parsed before; what bd leaves out is added, without changing the
 * order of the keys.
 */
export const issueOf = (line: string): Issue => {
  const value = JSON.parse(line) as Issue;
  return { ...value, status: value.status ?? 'open', priority: value.priority ?? 2 };
};

/** The id in a line that was parsed before; null in one that is no task. */
export const idIn = (line: string): string | null => {
  try {
    const value = JSON.parse(line) as { readonly id: string };
    return isOther(value) ? null : value.id;
  } catch {
    return null;
  }
};

/** Deeper values could be read, but not written again. */
const levelsAtMost = 100;

const conflictMarker = /^(<<<<<<<|=======|>>>>>>>|\|\|\|\|\|\|\|)/;

export const parseLine = (line: string): ParsedLine => {
  if (conflictMarker.test(line)) return { kind: 'broken', problem: 'a conflict marker of git' };
  if (isNestedDeeper(line, levelsAtMost))
    return { kind: 'broken', problem: 'it is nested too deeply' };
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    return { kind: 'broken', problem: messageOf(error) };
  }
  if (isOther(value)) return { kind: 'other' };
  const parsed = fileIssueSchema.safeParse(value);
  if (parsed.success) return { kind: 'issue', issue: issueOf(line) };
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  return { kind: 'broken', problem: problems.join('; ') };
};
