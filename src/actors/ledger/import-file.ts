import { copyFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import { plural } from '../../machines/plural.ts';
import type { Answer, CommitAnswer } from '../store/port.ts';
import { forgetFile } from '../store/rows/forget-file.ts';
import type { Database, Work } from '../store/rows/rows.ts';
import type { ExchangeState, FolderMarks } from './exchange-state.ts';
import type { ExporterCheck } from './exporter.ts';
import { issueOf, type LineProblem, parseLine } from './issue-line.ts';
import {
  chunksOf,
  type FileLine,
  issuesFileOf,
  missing,
  readLines,
  sizeProblem,
  stampOfIssues,
} from './issues-file.ts';
import { createImports, type ImportedTask } from './take-difference.ts';
import type { TaskTable } from './task-table.ts';

interface BrokenLine extends LineProblem {
  readonly line: number;
}

/** The content of the file against what the tables know of it. */
interface FileDifference {
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
const compareFile = async (db: Database, projectRoot: string): Promise<FileDifference> => {
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

/** Takes what others changed in `.beads/issues.jsonl`. */
export interface FileImport {
  /** True for a content that the tables took, gave or cannot take; also when there is no file. */
  knows(stamp: string): Promise<boolean>;
  /** As `knows`, without asking for the content that was known last. Enough to read, not to write. */
  knew(stamp: string): Promise<boolean>;
  /** This process is about to give the file that content. */
  gives(stamp: string): void;
  /**
   * Takes the file until its content is known; only the process that holds the exchange calls it.
   */
  run(): Promise<void>;
}

export interface FileImportOptions {
  readonly db: Database;
  readonly table: TaskTable;
  readonly projectRoot: string;
  /**
   * How the paths of files begin that belong to the tables; null: they are in memory, and have no
   * files.
   */
  readonly filesPrefix: string | null;
  /** Commits imported tasks with their journal entries. */
  readonly commit: (imported: readonly ImportedTask[]) => Answer<CommitAnswer>;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
  readonly exporter: Pick<ExporterCheck, 'mark' | 'write' | 'writeMark'>;
  readonly marks: FolderMarks;
  /** Called while the tasks of a project's first file are added; `done` is `all` in the end. */
  readonly onProgress?: (done: number, all: number) => void;
}

/**
 * A file in which lines are missing must stay as it is for so long before its tasks are removed.
 */
const stillMs = 500;
const importTries = 5;
/** Tasks in one transaction of the first import. */
const manyAtOnce = 2_000;

const namedAtMost = 10;

const sentenceOn = (broken: readonly BrokenLine[]): string => {
  const [first, ...others] = broken
    .slice(0, namedAtMost)
    .map(({ line, problem }, index) =>
      index === 0 ? `line ${line} cannot be read: ${problem}` : `line ${line}: ${problem}`,
    );
  const more = broken.length > namedAtMost ? [`and ${broken.length - namedAtMost} more`] : [];
  return `.beads/issues.jsonl ${[first, ...others, ...more].join('; ')}`;
};

/** Adds the tasks of a file to tables that have none. */
const addAll = async (
  { table, onProgress, exporter }: FileImportOptions,
  { changed }: FileDifference,
): Promise<void> => {
  let done = 0;
  for (const part of chunksOf(changed, manyAtOnce)) {
    await exporter.write(function* () {
      for (const line of part) yield* table.add(issueOf(line), line);
    });
    done += part.length;
    onProgress?.(done, changed.length);
    await nextTurn();
  }
};

/** A task that changed meanwhile is merged anew. */
const takeEach = async (
  { db, commit }: Pick<FileImportOptions, 'db' | 'commit'>,
  part: readonly string[],
  merge: (each: string) => Work<ImportedTask | null>,
): Promise<void> => {
  const mergeAll = function* (): Work<readonly ImportedTask[]> {
    const imported: ImportedTask[] = [];
    for (const each of part) {
      const task = yield* merge(each);
      if (task !== null) imported.push(task);
    }
    return imported;
  };
  for (let tries = 1; ; tries += 1) {
    const imported = await db.ask(mergeAll());
    if (imported.length === 0 || (await commit(imported)) === 'ok') return nextTurn();
    if (tries >= importTries) throw new Error('the tasks change all the time; it is tried again');
  }
};

const nothing = function* (): Work<void> {};

/** A program that is still writing has not removed what it has not written yet. */
const isFinished = async (file: string, { stamp, vanished }: FileDifference): Promise<boolean> => {
  if (vanished.length > 0) await delay(stillMs);
  return stampOfIssues(file) === stamp;
};

export const createFileImport = (options: FileImportOptions, state: ExchangeState): FileImport => {
  const { db, table, projectRoot, filesPrefix, log, exporter, marks } = options;
  const file = issuesFileOf(projectRoot);
  const imports = createImports(db, table);

  let known: string | null = null;
  /**
   * A file that is missing or empty says nothing: the next change of a task writes it again, for
   * nobody deletes all tasks like that.
   */
  const knows = async (stamp: string): Promise<boolean> => {
    if (stamp === missing) return true;
    const [taken, waiting] = await Promise.all([db.ask(state.stamp()), db.ask(state.waiting())]);
    if (stamp !== taken && stamp !== waiting?.stamp) return false;
    known = stamp;
    return true;
  };

  const take = async ({ broken, changed, vanished }: FileDifference): Promise<void> => {
    for (const part of chunksOf(changed)) await takeEach(options, part, imports.takeLine);
    for (const part of chunksOf(broken.length > 0 ? [] : vanished))
      await takeEach(options, part, imports.takeVanished);
  };

  /** Without a new one, the folder keeps the mark that it may have. */
  const newMark = (): string | null => {
    try {
      return marks.add();
    } catch {
      return exporter.mark();
    }
  };

  /** Does `more` in the same transaction. */
  const finish = async (
    { stamp, others, broken }: FileDifference,
    more: () => Work<void> = nothing,
  ): Promise<void> => {
    if (broken.length > 0) return void (await exporter.write(more));
    const mark = newMark();
    await exporter.writeMark(function* () {
      yield* more();
      return yield* state.took(stamp, others, mark);
    });
  };

  /** False for a file of which the tables know nothing, though they knew one. */
  const isKnown = async (): Promise<boolean> => {
    if ((await db.ask(state.stamp())) === null) return true;
    const mark = exporter.mark();
    return mark !== null && marks.has(mark);
  };

  /**
   * The tasks of version 2.1.0, of a clone, or of a project whose state folder is lost. A copy of
   * the file is kept.
   */
  const takeFirst = async (difference: FileDifference): Promise<void> => {
    const copy = filesPrefix === null ? null : `${filesPrefix}.first-import.jsonl`;
    if (copy !== null) copyFileSync(file, copy);
    if ((await db.ask(table.newest())).size === 0) await addAll(options, difference);
    else await take(difference);
    // Also of what an import added that was cut off.
    await finish(difference, table.countBlockers);
    for (const name of ['.agent.lock', 'issues.jsonl.bak'])
      rmSync(join(dirname(file), name), { force: true });
    const { changed } = difference;
    log(
      `took ${plural(changed.length, 'task')} over from .beads/issues.jsonl; a copy of the file is ${copy}`,
      {},
    );
  };

  const wait = async (stamp: string, problem: string): Promise<void> => {
    await exporter.write(() => state.wait({ stamp, problem }));
  };

  return {
    knows,
    knew: async (stamp) => stamp === known || knows(stamp),
    gives: (stamp) => {
      known = stamp;
    },
    run: async () => {
      for (let tries = 0; tries < importTries; tries += 1) {
        const found = stampOfIssues(file);
        if (await knows(found)) return;
        const tooLarge = sizeProblem(file);
        if (tooLarge !== null) {
          await wait(found, tooLarge);
          continue;
        }
        const difference = await compareFile(db, projectRoot);
        const { stamp, broken } = difference;
        if (!(await isFinished(file, difference))) continue;
        // Asked when the file was read: its folder may have been replaced before.
        if (!(await isKnown())) {
          await exporter.writeMark(() => forgetFile(db));
          continue;
        }
        const holding = broken.filter(({ holdsAll }) => holdsAll);
        if (holding.length > 0) {
          await wait(stamp, sentenceOn(holding));
          continue;
        }
        if ((await db.ask(state.stamp())) === null) await takeFirst(difference);
        else {
          await take(difference);
          await finish(difference);
        }
        // The lines that can be read are taken, and the file is not written without the others.
        if (broken.length > 0) await wait(stamp, sentenceOn(broken));
      }
    },
  };
};
