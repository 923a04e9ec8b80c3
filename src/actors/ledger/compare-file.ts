import type { Database, Work } from '../store/rows.ts';
import { type LineProblem, parseLine } from './issue-line.ts';
import { type FileLine, issuesFileOf, missing, readLines, stampOfIssues } from './issues-file.ts';

export interface BrokenLine extends LineProblem {
  readonly line: number;
}

/** The content of the file against what the tables know of it. */
export interface FileDifference {
  /** Stamp of the content that was read. */
  readonly stamp: string;
  /** Lines that are no tasks, word for word. */
  readonly others: readonly string[];
  readonly broken: readonly BrokenLine[];
  /** Lines of tasks that are new or not as the file had them last. */
  readonly changed: readonly string[];
  /** Ids of tasks that the file held last and holds no more. */
  readonly vanished: readonly string[];
}

/** Reads the file and changes nothing. @throws UnsafeFileError */
export const compareFile = async (db: Database, projectRoot: string): Promise<FileDifference> => {
  const file = issuesFileOf(projectRoot);
  const held = db.prepare('select coalesce(base, line) as held from tasks where id = ?');
  const others: string[] = [];
  const broken: BrokenLine[] = [];
  const changed: string[] = [];
  const seen = new Map<string, number>();

  const stamp = stampOfIssues(file);
  if (stamp === missing) return { stamp, others, broken, changed, vanished: [] };
  const takeLine = function* (found: FileLine): Work<void> {
    if ('problem' in found) return void broken.push({ ...found, holdsAll: false });
    const { line, text } = found;
    if (text.trim() === '') return;
    const parsed = parseLine(text);
    if (parsed.kind === 'broken') return void broken.push({ ...parsed, line });
    if (parsed.kind === 'other') return void others.push(text);
    const { id } = parsed.issue;
    const first = seen.get(id);
    if (first !== undefined)
      return void broken.push({ line, problem: `${id} is on line ${first} too`, holdsAll: true });
    seen.set(id, line);
    if ((yield* held.first(id))?.['held'] !== text) changed.push(text);
  };
  const takeLines = function* (lines: readonly FileLine[]): Work<void> {
    for (const each of lines) yield* takeLine(each);
  };
  await readLines(file, (lines) => db.ask(takeLines(lines)));
  const known = await db.ask(
    db.prepare("select id from tasks where base is null or base <> ''").all(),
  );
  // Nobody removes all tasks like that.
  const isBlank = seen.size + others.length + broken.length === 0;
  if (isBlank && known.length > 0)
    broken.push({
      line: 1,
      problem: 'the file is blank; remove it, and the next change of a task writes it again',
      holdsAll: true,
    });
  const vanished = known.map(({ id }) => String(id)).filter((id) => !seen.has(id));
  return { stamp, others, broken, changed, vanished };
};
