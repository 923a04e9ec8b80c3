/** A line of a patch. `before` and `after` are its numbers on either side. */
export interface DiffLine {
  readonly kind: 'same' | 'added' | 'removed';
  readonly text: string;
  readonly before: number | null;
  readonly after: number | null;
}

export interface Hunk {
  readonly header: string;
  readonly lines: readonly DiffLine[];
}

export interface ChangedFile {
  readonly path: string;
  /** `new file`, `deleted`, `renamed from …`, or nothing. */
  readonly note: string;
  readonly added: number;
  readonly removed: number;
  /** Lines of all hunks. */
  readonly size: number;
  /** Read from the patch when they are first asked for. */
  readonly hunks: readonly Hunk[];
}

/** The hunks up to that many lines. */
export const firstLines = (hunks: readonly Hunk[], count: number): readonly Hunk[] => {
  let left = count;
  return hunks.flatMap(({ header, lines }) => {
    if (left <= 0) return [];
    const shown = lines.slice(0, left);
    left -= shown.length;
    return { header, lines: shown };
  });
};

const unquoted = (name: string): string => {
  if (!name.startsWith('"')) return name;
  const bytes: number[] = [];
  const inside = name.slice(1, -1);
  for (const [part, octal, escaped] of inside.matchAll(/\\([0-7]{3})|\\(.)|[^\\]+/g)) {
    const text = escaped === undefined ? part : ({ n: '\n', t: '\t' }[escaped] ?? escaped);
    if (octal !== undefined) bytes.push(Number.parseInt(octal, 8));
    else bytes.push(...new TextEncoder().encode(text));
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
};

const sideOf = (line: string): string | null => {
  const name = unquoted(line.slice(4).replace(/\t$/, ''));
  return name === '/dev/null' ? null : name.replace(/^[ab]\//, '');
};

const pathOf = (lines: readonly string[]): string => {
  const after = lines.find((line) => line.startsWith('+++ '));
  const before = lines.find((line) => line.startsWith('--- '));
  const named = (after && sideOf(after)) ?? (before && sideOf(before));
  if (named) return named;
  const renamed = lines.find((line) => line.startsWith('rename to '));
  if (renamed !== undefined) return unquoted(renamed.slice('rename to '.length));
  return /^diff --git "?a\/(.*?)"? "?b\//.exec(lines[0] ?? '')?.[1] ?? 'unknown file';
};

const noteOf = (head: readonly string[]): string => {
  if (head.some((line) => line.startsWith('new file'))) return 'new file';
  if (head.some((line) => line.startsWith('deleted file'))) return 'deleted';
  const from = head.find((line) => line.startsWith('rename from '));
  if (from !== undefined) return `renamed from ${unquoted(from.slice('rename from '.length))}`;
  return head.some((line) => line.startsWith('Binary') || line.startsWith('GIT binary'))
    ? 'binary file'
    : '';
};

const hunkOf = (lines: readonly string[]): Hunk => {
  const [header = '', ...body] = lines;
  const [, from = '0', to = '0'] = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(header) ?? [];
  let [before, after] = [Number(from), Number(to)];
  const found: DiffLine[] = [];
  for (const line of body) {
    const text = line.slice(1);
    if (line.startsWith('+')) found.push({ kind: 'added', text, before: null, after: after++ });
    else if (line.startsWith('-'))
      found.push({ kind: 'removed', text, before: before++, after: null });
    else if (!line.startsWith('\\'))
      found.push({ kind: 'same', text, before: before++, after: after++ });
  }
  return { header, lines: found };
};

const hunksIn = (text: string): readonly Hunk[] => {
  const lines = text.replace(/\n$/, '').split('\n');
  const starts = lines.flatMap((line, index) => (line.startsWith('@@ ') ? [index] : []));
  return starts.map((start, index) => hunkOf(lines.slice(start, starts[index + 1])));
};

/** Counts without an object for each line: a patch may have a million. */
const countsIn = (text: string, start: number): Pick<ChangedFile, 'added' | 'removed' | 'size'> => {
  let [added, removed, size] = [0, 0, 0];
  for (let at = start; at < text.length; at = text.indexOf('\n', at) + 1 || text.length) {
    const sign = text[at];
    if (sign === '+') added += 1;
    if (sign === '-') removed += 1;
    if (sign !== '@' && sign !== '\\') size += 1;
  }
  return { added, removed, size };
};

const fileOf = (text: string): ChangedFile => {
  const found = text.indexOf('\n@@ ');
  const start = found < 0 ? text.length : found + 1;
  const head = text.slice(0, start).replace(/\n$/, '').split('\n');
  let hunks: readonly Hunk[] | null = null;
  return {
    path: pathOf(head),
    note: noteOf(head),
    ...countsIn(text, start),
    get hunks() {
      hunks ??= hunksIn(text.slice(start));
      return hunks;
    },
  };
};

/** The files of a patch that git wrote. */
export const filesIn = (patch: string): readonly ChangedFile[] =>
  patch
    .split(/^(?=diff --git )/m)
    .filter((part) => part.startsWith('diff --git '))
    .map(fileOf);

/** A row of the changes side by side; null: nothing on that side. */
export interface Pair {
  readonly left: DiffLine | null;
  readonly right: DiffLine | null;
}

/** Removed lines stand beside the added ones that follow them. */
export const sideBySide = (lines: readonly DiffLine[]): readonly Pair[] => {
  const pairs: Pair[] = [];
  let removed: DiffLine[] = [];
  const flush = (): void => {
    pairs.push(...removed.map((left) => ({ left, right: null })));
    removed = [];
  };
  for (const line of lines) {
    if (line.kind === 'removed') removed.push(line);
    else if (line.kind === 'added') pairs.push({ left: removed.shift() ?? null, right: line });
    else {
      flush();
      pairs.push({ left: line, right: line });
    }
  }
  flush();
  return pairs;
};
