type Expected =
  | 'a value'
  | 'a value or ]'
  | 'a key'
  | 'a key or }'
  | ':'
  | ', or ]'
  | ', or }'
  | 'the end';

interface Open {
  readonly isList: boolean;
  /** The key or the number of the value that is read. */
  at: string | number;
}

export interface JsonLines {
  /** Where each value begins, by its path as JSON. */
  readonly of: ReadonlyMap<string, number>;
  /** Null when the text is JSON. */
  readonly fault: { readonly line: number; readonly problem: string } | null;
}

const token =
  /([{}[\],:])|("(?:[ !#-[\]-\u{10ffff}]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?\b|true\b|false\b|null\b)/uy;
const space = /[ \t\r\n]*/y;

const shownAt = (text: string, from: number): string =>
  from >= text.length ? 'the text ends' : JSON.stringify(/\S{1,20}/u.exec(text.slice(from))?.[0]);

/** Reads JSON as `JSON.parse` does, for the lines that it does not tell. */
export const linesOfJson = (text: string): JsonLines => {
  const of = new Map<string, number>();
  const open: Open[] = [];
  let expected: Expected = 'a value';
  let at = 0;
  let line = 1;
  const skip = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    at += found?.[0].length ?? 0;
    line += (found?.[0].split('\n').length ?? 1) - 1;
    return found;
  };
  const afterValue = (): Expected => {
    const inner = open.at(-1);
    if (inner === undefined) return 'the end';
    return inner.isList ? ', or ]' : ', or }';
  };
  const afterMark = (mark: string): Expected | null => {
    const inner = open.at(-1);
    if (expected.startsWith('a value') && (mark === '{' || mark === '[')) {
      open.push({ isList: mark === '[', at: mark === '[' ? 0 : '' });
      return mark === '[' ? 'a value or ]' : 'a key or }';
    }
    if (expected.endsWith(mark) && (mark === ']' || mark === '}')) {
      open.pop();
      return afterValue();
    }
    if (mark === ':' && expected === ':') return 'a value';
    if (mark !== ',' || inner === undefined || !expected.startsWith(',')) return null;
    if (typeof inner.at === 'number') inner.at += 1;
    return inner.isList ? 'a value' : 'a key';
  };
  const afterText = (quoted: string | undefined): Expected | null => {
    const inner = open.at(-1);
    if (expected.startsWith('a value')) return afterValue();
    if (quoted === undefined || inner === undefined || !expected.startsWith('a key')) return null;
    inner.at = JSON.parse(quoted);
    return ':';
  };
  /** Null where the token cannot stand. */
  const next = (mark: string | undefined, quoted: string | undefined): Expected | null =>
    mark === undefined ? afterText(quoted) : afterMark(mark);
  for (;;) {
    skip(space);
    if (at >= text.length && expected === 'the end') return { of, fault: null };
    const from = at;
    const beganOn = line;
    if (expected.startsWith('a value'))
      of.set(JSON.stringify(open.map((each) => each.at)), beganOn);
    const found = skip(token);
    const then = found === null ? null : next(found[1], found[2]);
    if (then === null) {
      const problem = `expected ${expected}, but ${from >= text.length ? '' : 'found '}${shownAt(text, from)}`;
      return { of, fault: { line: beganOn, problem } };
    }
    expected = then;
  }
};
