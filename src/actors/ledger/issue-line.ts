import { isDeepStrictEqual } from 'node:util';
import { isNestedDeeper } from '../../machines/json.ts';
import { messageOf } from '../../machines/message-of.ts';
import { fileIssueSchema, type Issue } from './issue.ts';

/** `other`: the `_schema` header, or a `_type` that is no task; kept word for word. */
type ParsedLine =
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

/** An element of a list, or a member of an object. */
interface Part {
  /** The name of a member. */
  readonly key: string;
  /** With the name and the colon, and the space in front. */
  readonly text: string;
  readonly value: string;
}

type Members = Readonly<Record<string, unknown>>;

const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The place of the quotation mark that ends the string from `from`. */
const endOfString = (text: string, from: number): number => {
  for (let at = text.indexOf('"', from + 1); ; at = text.indexOf('"', at + 1)) {
    let slashes = 0;
    while (text[at - 1 - slashes] === '\\') slashes += 1;
    if (slashes % 2 === 0) return at;
  }
};

/** The parts of a list or an object whose text `JSON.parse` accepts. */
const partsOf = (whole: string): readonly Part[] => {
  const text = whole.trim();
  const parts: Part[] = [];
  let [from, colon, level] = [1, 0, 0];
  const end = (at: number): void => {
    const part = text.slice(from, at);
    if (part.trim() !== '') {
      const key = colon === 0 ? '' : String(JSON.parse(text.slice(from, colon)));
      parts.push({ key, text: part, value: text.slice(colon === 0 ? from : colon + 1, at) });
    }
    [from, colon] = [at + 1, 0];
  };
  for (let at = 1; at < text.length - 1; at += 1) {
    const character = text[at];
    if (character === '"') at = endOfString(text, at);
    else if (character === '{' || character === '[') level += 1;
    else if (character === '}' || character === ']') level -= 1;
    else if (level > 0) continue;
    else if (character === ',') end(at);
    else if (character === ':') colon = at;
  }
  end(text.length - 1);
  return parts;
};

const listText = (text: string, before: readonly unknown[], after: readonly unknown[]): string => {
  const parts = partsOf(text);
  let next = 0;
  const printed = after.map((element) => {
    const at = before.findIndex((was, index) => index >= next && isDeepStrictEqual(was, element));
    if (at < 0) return JSON.stringify(element);
    next = at + 1;
    return parts[at]?.text ?? JSON.stringify(element);
  });
  return `[${printed.join(',')}]`;
};

const membersText = (text: string, before: Members, after: Members): string => {
  const parts = partsOf(text);
  const kept = parts.flatMap(({ key, text: part, value }) => {
    if (isDeepStrictEqual(before[key], after[key])) return [part];
    if (after[key] === undefined) return [];
    return [part.slice(0, -value.length) + textOver(value, before[key], after[key])];
  });
  const there = new Set(parts.map(({ key }) => key));
  const added = Object.entries(after).filter(
    ([key, value]) =>
      !there.has(key) && value !== undefined && !isDeepStrictEqual(before[key], value),
  );
  const fresh = added.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`);
  return `{${[...kept, ...fresh].join(',')}}`;
};

const textOver = (text: string, before: unknown, after: unknown): string => {
  if (isDeepStrictEqual(before, after)) return text;
  if (Array.isArray(before) && Array.isArray(after)) return listText(text, before, after);
  if (isMembers(before) && isMembers(after)) return membersText(text, before, after);
  return JSON.stringify(after);
};

/**
 * The line of a task. What is as in the line before stays as its writer wrote it, which
 * `JSON.stringify` would not do: `1.0`, `1e400`, numbers of many digits, escapes, null.
 */
export const lineOf = (issue: Issue, before: string | null): string =>
  before === null ? JSON.stringify(issue) : textOver(before, issueOf(before), issue);
