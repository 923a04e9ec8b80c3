import { isDeepStrictEqual } from 'node:util';
import type { Issue } from './issue.ts';
import { issueOf } from './issue-line.ts';

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
