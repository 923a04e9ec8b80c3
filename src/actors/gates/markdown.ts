export interface MarkdownSection {
  /** 1 for `#`. */
  readonly level: number;
  /** Lower case, without a number before it and marks around it. */
  readonly title: string;
  /** The index of the first of its lines. */
  readonly from: number;
  /** The lines up to the next heading of its level or above, without its own. */
  readonly lines: readonly string[];
}

const plainTitle = (text: string): string =>
  text
    .replace(/[*_`#]/g, '')
    .replace(/^\s*\d+(\.\d+)*[.)]?\s+/, '')
    .replace(/(?<![:\s])[:\s]+$/, '')
    .trim()
    .toLowerCase();

const headingOf = (line: string): { readonly level: number; readonly title: string } | null => {
  const [, marks, text] = /^ {0,3}(#{1,6})\s+(.*)/.exec(line) ?? [];
  return marks === undefined ? null : { level: marks.length, title: plainTitle(text ?? '') };
};

/** The headings of a document outside its code blocks, with what stands below them. */
export const sectionsOf = (text: string): readonly MarkdownSection[] => {
  const lines = text.split(/\r?\n/);
  const found: { level: number; title: string; from: number; to: number }[] = [];
  /** Those that a heading of their level or above still ends: one a level at most. */
  let open: typeof found = [];
  let fence = '';
  for (const [at, line] of lines.entries()) {
    const [, marks = ''] = /^ {0,3}(`{3,}|~{3,})/.exec(line) ?? [];
    if (fence === '' && marks !== '') fence = marks;
    else if (fence !== '' && line.trim().startsWith(fence)) fence = '';
    const heading = fence === '' ? headingOf(line) : null;
    if (heading === null) continue;
    for (const each of open) if (each.level >= heading.level) each.to = at;
    const section = { ...heading, from: at + 1, to: lines.length };
    open = [...open.filter(({ level }) => level < heading.level), section];
    found.push(section);
  }
  return found.map(({ level, title, from, to }) => ({
    level,
    title,
    from,
    lines: lines.slice(from, to),
  }));
};

export const sectionNamed = (text: string, title: string): MarkdownSection | null =>
  sectionsOf(text).find((section) => section.title === title.toLowerCase()) ?? null;

const listItem = /^\s*(?:[-*+]|\d+[.)])\s+(\S.*)$/;

/** The texts of the list items among some lines. */
export const listItems = (lines: readonly string[]): readonly string[] =>
  lines.flatMap((line) => listItem.exec(line)?.[1] ?? []);

/** Something other than headings and marks. */
export const hasText = (lines: readonly string[]): boolean =>
  lines.some((line) => headingOf(line) === null && /[\p{L}\p{N}]/u.test(line));
