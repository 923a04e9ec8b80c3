import { isNestedDeeper } from '../../machines/json.ts';
import { messageOf } from '../../machines/message-of.ts';
import { fileIssueSchema, type Issue } from './issue.ts';

/** `other`: the `_schema` header, or a `_type` that is no task; kept word for word. */
export type ParsedLine =
  | { readonly kind: 'issue'; readonly issue: Issue }
  | { readonly kind: 'other' }
  | ({ readonly kind: 'broken' } & LineProblem);

/** `holdsAll`: the whole file waits, for nobody knows which of its lines count. */
export interface LineProblem {
  readonly problem: string;
  readonly holdsAll: boolean;
}

const isOther = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  ('_schema' in value ||
    ('_type' in value && value._type !== 'issue') ||
    ('_type' in value && !('id' in value)));

/** Some programs write null for what is not there. */
const withoutNulls = (value: object): object =>
  Object.values(value).includes(null)
    ? Object.fromEntries(Object.entries(value).filter(([, each]) => each !== null))
    : value;

/**
 * The task in a line that was parsed before; what bd leaves out is added, without changing the
 * order of the keys.
 */
export const issueOf = (line: string): Issue => {
  const value = withoutNulls(JSON.parse(line)) as Issue;
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
  const broken = (problem: string, holdsAll = false): ParsedLine => ({
    kind: 'broken',
    problem,
    holdsAll,
  });
  if (conflictMarker.test(line)) return broken('a conflict marker of git', true);
  if (isNestedDeeper(line, levelsAtMost)) return broken('it is nested too deeply');
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    return broken(`it is not JSON: ${messageOf(error)}`);
  }
  if (isOther(value)) return { kind: 'other' };
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return broken('it is not an object');
  const parsed = fileIssueSchema.safeParse(withoutNulls(value));
  if (parsed.success) return { kind: 'issue', issue: issueOf(line) };
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join('.')} ${message}`);
  return broken(problems.slice(0, 3).join(', '));
};
