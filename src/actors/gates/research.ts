import { plural } from '../../machines/plural.ts';
import { countLines } from '../files/text.ts';
import { fail, type Judgement, pass, readDocument, type StepEvidence } from './evidence.ts';

interface MarkdownSection {
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
const sectionsOf = (text: string): readonly MarkdownSection[] => {
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

const sectionNamed = (text: string, title: string): MarkdownSection | null =>
  sectionsOf(text).find((section) => section.title === title.toLowerCase()) ?? null;

const listItem = /^\s*(?:[-*+]|\d+[.)])\s+(\S.*)$/;

/** The texts of the list items among some lines. */
const listItems = (lines: readonly string[]): readonly string[] =>
  lines.flatMap((line) => listItem.exec(line)?.[1] ?? []);

/** Something other than headings and marks. */
const hasText = (lines: readonly string[]): boolean =>
  lines.some((line) => headingOf(line) === null && /[\p{L}\p{N}]/u.test(line));

const sourceMaxBytes = 16 * 1024 * 1024;
const referencesAtMost = 2_000;

export const checkSections = async (
  evidence: StepEvidence,
  path: string,
  titles: readonly string[],
): Promise<Judgement> => {
  const found = await readDocument(evidence, path);
  if ('says' in found) return found;
  const problems = titles.flatMap((title) => {
    const section = sectionNamed(found.text, title);
    if (section === null) return [`has no section ${title}`];
    return hasText(section.lines) ? [] : [`has nothing in the section ${title}`];
  });
  return problems.length === 0
    ? pass(`${path} has the sections ${titles.join(', ')}`)
    : fail(`${path} ${problems.join('; ')}`);
};

/** Q1, Q2 … of the list items that are questions. */
const questionsIn = (text: string): readonly string[] => [
  ...new Set(
    listItems(text.split(/\r?\n/)).flatMap((item) => {
      const found = /\bQ\d{1,3}\b/.exec(item);
      return found !== null && item.includes('?', found.index) ? [found[0]] : [];
    }),
  ),
];

const isOpen = (line: string): boolean =>
  /\b(unanswered|not answered|no answer|open question|unknown|tbd|todo)\b/i.test(line);

/** The questions that a line names in its heading or before its first words. */
const answeredIn = (line: string): readonly string[] => {
  const isHeading = /^#+ /.test(line);
  const words = /\W*[\p{L}\p{N}]/uy;
  return [...line.matchAll(/\bQ\d{1,3}\b/g)].flatMap(({ 0: name, index }) => {
    words.lastIndex = index + name.length;
    return isHeading || words.test(line) ? [name] : [];
  });
};

/** Every question is answered outside the section that repeats the objectives. */
export const checkAnswers = async (
  evidence: StepEvidence,
  path: string,
  questionsPath: string,
): Promise<Judgement> => {
  const asked = await readDocument(evidence, questionsPath);
  if ('says' in asked) return asked;
  const report = await readDocument(evidence, path);
  if ('says' in report) return report;
  const questions = questionsIn(asked.text);
  if (questions.length === 0)
    return fail(`${questionsPath} has no question; each is a list item such as "- Q1: …?"`);
  const objectives = sectionNamed(report.text, 'objectives');
  const answered = new Set(
    report.text
      .split(/\r?\n/)
      .toSpliced(objectives?.from ?? 0, objectives?.lines.length ?? 0)
      .filter((line) => !isOpen(line))
      .flatMap(answeredIn),
  );
  const open = questions.filter((name) => !answered.has(name));
  return open.length === 0
    ? pass(`${path} answers ${questions.join(', ')}`)
    : fail(`${path} does not answer ${open.join(', ')} of ${questionsPath}`);
};

const placeInFile = /(?<![\w/.:@+-])([\w@+./-]+):(\d{1,7})(?:-(\d{1,7}))?(?!\w|\.\w)/g;

/** A name with an extension, or one in a folder; `12:30` and `//host:80` are none. */
const isFilePath = (path: string): boolean => {
  const parts = path.split('/');
  const name = parts.at(-1) ?? '';
  return (
    !parts.includes('') &&
    (/^[\w@+-][\w@+.-]*\.[A-Za-z]\w{0,9}$/.test(name) ||
      (parts.length > 1 && /^[\w@+-]+$/.test(name)))
  );
};

interface Reference {
  readonly path: string;
  readonly line: number;
}

const referencesIn = (text: string): readonly Reference[] =>
  [...text.matchAll(placeInFile)]
    .filter(([, path = '']) => isFilePath(path))
    .map(([, path = '', line, last]) => ({
      path: path.replace(/^\.\//, ''),
      line: Math.max(Number(line), Number(last ?? 0)),
    }));

/** Each heading below the section; without one, each item of its lists. */
const findingsIn = ({
  level,
  lines,
}: MarkdownSection): readonly { title: string; text: string }[] => {
  const below = sectionsOf(lines.join('\n')).filter((each) => each.level === level + 1);
  return below.length > 0
    ? below.map(({ title, lines: own }) => ({ title, text: own.join('\n') }))
    : listItems(lines).map((item) => ({ title: item.slice(0, 60), text: item }));
};

const createLengthLookUp = ({ files }: StepEvidence) => {
  const lengths = new Map<string, number | null>();
  const lengthOf = async (path: string): Promise<number | null> => {
    const known = lengths.get(path);
    if (known !== undefined) return known;
    const text = await files.read(path, sourceMaxBytes);
    const length = text === null ? null : countLines(text.replace(/\n$/, ''));
    lengths.set(path, length);
    return length;
  };
  /** Why a reference leads nowhere; null when its line exists. */
  return async ({ path, line }: Reference): Promise<string | null> => {
    const length = await lengthOf(path);
    if (length === null) return `${path}:${line} (no such file)`;
    return line >= 1 && line <= length ? null : `${path}:${line} (it has ${length} lines)`;
  };
};

/** Every finding has a reference, as file and line, and each reference exists. */
export const checkFindings = async (
  evidence: StepEvidence,
  path: string,
  title: string,
): Promise<Judgement> => {
  const report = await readDocument(evidence, path);
  if ('says' in report) return report;
  const section = sectionNamed(report.text, title);
  if (section === null) return fail(`${path} has no section ${title}`);
  const findings = findingsIn(section);
  if (findings.length === 0) return fail(`the section ${title} of ${path} has no finding`);
  const references = referencesIn(section.lines.join('\n'));
  if (references.length > referencesAtMost)
    return fail(`the section ${title} of ${path} has more than ${referencesAtMost} references`);
  const bare = findings.filter(({ text }) => referencesIn(text).length === 0);
  const lookUp = createLengthLookUp(evidence);
  const problems: string[] = bare.map(({ title: name }) => `"${name}" has no file:line`);
  for (const each of references) {
    const problem = await lookUp(each);
    if (problem !== null) problems.push(problem);
  }
  return problems.length === 0
    ? pass(
        `${plural(findings.length, 'finding')} with ${plural(references.length, 'reference')} that ${references.length === 1 ? 'exists' : 'exist'}`,
      )
    : fail(`in the section ${title} of ${path}: ${problems.slice(0, 20).join('; ')}`);
};

/** The section has a line that begins with "Next steps", and a list after it. */
export const checkNextSteps = async (
  evidence: StepEvidence,
  path: string,
  title: string,
): Promise<Judgement> => {
  const report = await readDocument(evidence, path);
  if ('says' in report) return report;
  const lines = sectionNamed(report.text, title)?.lines;
  if (lines === undefined) return fail(`${path} has no section ${title}`);
  const at = lines.findIndex((line) => /^[\s#*_>-]*next steps\b/i.test(line));
  if (at < 0) return fail(`the section ${title} of ${path} has no line "Next steps:"`);
  const steps = listItems(lines.slice(at + 1));
  return steps.length === 0
    ? fail(`"Next steps" of ${path} is followed by no list`)
    : pass(`${path} names ${plural(steps.length, 'next step')}`);
};
