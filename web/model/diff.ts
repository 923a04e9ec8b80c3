import { pathOnLine, unquoted } from '../../src/machines/patch-name.ts';

/** A line of a patch. `before` and `after` are its numbers on either side. */
export interface DiffLine {
  readonly kind: 'same' | 'added' | 'removed';
  readonly text: string;
  readonly before: number | null;
  readonly after: number | null;
  /** The file ends here, without a newline. */
  readonly isOpenEnd?: true;
}

export interface Hunk {
  readonly header: string;
  readonly lines: readonly DiffLine[];
}

export interface ChangedFile {
  readonly path: string;
  /** A fact that its lines do not show: `new file, empty`, `renamed from …`, `binary`, or nothing. */
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

const pathOf = (lines: readonly string[]): string => {
  const after = lines.find((line) => line.startsWith('+++ '));
  const before = lines.find((line) => line.startsWith('--- '));
  const named = (after && pathOnLine(after)) ?? (before && pathOnLine(before));
  if (named) return named;
  const renamed = lines.find((line) => line.startsWith('rename to '));
  if (renamed !== undefined) return unquoted(renamed.slice('rename to '.length));
  return /^diff --git "?a\/(.*?)"? "?b\//.exec(lines[0] ?? '')?.[1] ?? 'unknown file';
};

type Kind = 'file' | 'symbolic link' | 'submodule';
const kindOf = (mode: string): Kind =>
  mode === '120000' ? 'symbolic link' : mode === '160000' ? 'submodule' : 'file';

/** Reads the lines before the first hunk. */
const readHead = (head: readonly string[], isWithoutLines: boolean) => {
  const after = (words: string): string | null =>
    head.find((line) => line.startsWith(words))?.slice(words.length) ?? null;
  const [created, deleted] = [after('new file mode '), after('deleted file mode ')];
  const [changed, from] = [after('new mode '), after('rename from ')];
  const kind = kindOf(created ?? deleted ?? after('index ')?.split(' ')[1] ?? '');
  const isBinary = after('Binary') !== null || after('GIT binary') !== null;
  const notes = [
    created !== null && `new ${kind}`,
    deleted !== null && `deleted${kind === 'file' ? '' : ` ${kind}`}`,
    from !== null && `renamed from ${unquoted(from)}`,
    created === null && deleted === null && kind !== 'file' && kind,
    created === '100755' && 'executable',
    changed === '100755' && 'now executable',
    changed === '100644' && 'no longer executable',
    isBinary && 'binary',
    (created ?? deleted) !== null && isWithoutLines && !isBinary && 'empty',
  ];
  return { kind, note: notes.filter(Boolean).join(', ') };
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
    else {
      const last = found.pop();
      if (last !== undefined) found.push({ ...last, isOpenEnd: true });
    }
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

interface ReadFile {
  readonly file: ChangedFile;
  readonly kind: Kind;
}

const readFile = (text: string): ReadFile => {
  const found = text.indexOf('\n@@ ');
  const start = found < 0 ? text.length : found + 1;
  const head = text.slice(0, start).replace(/\n$/, '').split('\n');
  const { kind, note } = readHead(head, found < 0);
  let hunks: readonly Hunk[] | null = null;
  const file = {
    path: pathOf(head),
    note,
    ...countsIn(text, start),
    get hunks() {
      hunks ??= hunksIn(text.slice(start));
      return hunks;
    },
  };
  return { file, kind };
};

/** Git writes that one kind of file took the place of another as two changes of the path. */
const replaced = ({ file: gone, kind: before }: ReadFile, { file, kind }: ReadFile): ReadFile => ({
  kind,
  file: {
    path: file.path,
    note: `${kind} in place of a ${before}`,
    added: gone.added + file.added,
    removed: gone.removed + file.removed,
    size: gone.size + file.size,
    get hunks() {
      return [...gone.hunks, ...file.hunks];
    },
  },
});

/** The files of a patch that git wrote. */
export const filesIn = (patch: string): readonly ChangedFile[] => {
  const files: ReadFile[] = [];
  for (const part of patch.split(/^(?=diff --git )/m)) {
    if (!part.startsWith('diff --git ')) continue;
    const next = readFile(part);
    const last = files.at(-1);
    if (last?.file.path === next.file.path) files[files.length - 1] = replaced(last, next);
    else files.push(next);
  }
  return files.map(({ file }) => file);
};

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
