import { join } from 'node:path';
import { ServiceError } from '../../machines/errors.ts';
import { messageOf } from '../../machines/message-of.ts';
import { UnsafeFileError } from '../files/regular-file.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { countTasksInFile, findBdData } from '../ledger/ownership.ts';
import { createBdTracker } from './bd/bd.ts';
import { createBdCalls, defaultBdLimits } from './bd/calls.ts';
import { createEmbeddedTracker, type EmbeddedOptions } from './embedded/embedded.ts';
import type { NewTask, StatusChange, TaskFields, Tracker } from './port.ts';

export interface TrackerOptions extends EmbeddedOptions {
  readonly projectRoot: string;
  /** Opened when the embedded tracker is used first. */
  readonly ledger: () => Ledger;
  readonly mode: 'auto' | 'bd' | 'embedded';
  /** The configured program, absolute; else `bd` on PATH. */
  readonly bdPath: string | null;
  readonly processEnv: NodeJS.ProcessEnv;
  /** Removes secrets from what is written. */
  readonly redact: (text: string) => string;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

const defaultActor = 'agent-server';

/**
 * `tracker.mode` is bd, but the tasks are still in the file. Even a read would make bd create a
 * database, so bd is not called.
 */
const notImported = (count: number): ServiceError =>
  new ServiceError('tracker_unavailable', {
    detail: `tracker.mode is bd, but the ${count} tasks of this project are in .beads/issues.jsonl`,
    remedy: "hand them over with 'agent init'",
  });

/** @throws tracker_unavailable when `.beads` is not a real folder inside the project */
const ownBdData = (folder: string): string | undefined => {
  try {
    return findBdData(folder);
  } catch (error) {
    if (!(error instanceof UnsafeFileError)) throw error;
    throw new ServiceError(
      'tracker_unavailable',
      { detail: error.problem, remedy: error.remedy },
      { cause: error },
    );
  }
};

/** @returns whether bd keeps the tasks now. @throws tracker_unavailable */
const createOwnerCheck =
  ({ projectRoot, mode }: Pick<TrackerOptions, 'projectRoot' | 'mode'>) =>
  (): boolean => {
    if (mode === 'embedded') return false;
    if (ownBdData(join(projectRoot, '.beads')) !== undefined) return true;
    if (mode === 'auto') return false;
    const count = countTasksInFile(projectRoot);
    if (count > 0) throw notImported(count);
    return true;
  };

/** No secret reaches the texts of a task. */
const createSafeTexts = (redact: TrackerOptions['redact']) => ({
  task: (task: NewTask): NewTask => ({
    ...task,
    title: redact(task.title),
    description: redact(task.description),
  }),
  change: (change: StatusChange): StatusChange =>
    change.kind === 'close' ? { ...change, reason: redact(change.reason) } : change,
  fields: ({ title, description, ...rest }: TaskFields): TaskFields => ({
    ...rest,
    ...(title === undefined ? {} : { title: redact(title) }),
    ...(description === undefined ? {} : { description: redact(description) }),
  }),
});

/**
 * The choice is made for every call: bd if its data exists, else the built-in tracker. If bd takes
 * the tasks over while the server runs, the built-in tracker refuses the write, and
 * the write goes to bd.
 */
export const createTracker = (options: TrackerOptions): Tracker => {
  const { projectRoot, mode, bdPath, processEnv, redact, log, actor = defaultActor } = options;
  const calls = createBdCalls({ projectRoot, bdPath, processEnv, limits: defaultBdLimits });
  let opened: Tracker | null = null;
  const embedded = (): Tracker => {
    opened ??= createEmbeddedTracker({ ...options, actor }, options.ledger());
    return opened;
  };
  const bd = createBdTracker({
    calls,
    projectRoot,
    actor,
    log,
    requests: () => options.ledger().db,
  });
  const bdKeepsTasks = createOwnerCheck(options);
  const safe = createSafeTexts(redact);

  const use = async <Result>(work: (tracker: Tracker) => Promise<Result>): Promise<Result> => {
    if (bdKeepsTasks()) return work(bd);
    try {
      return await work(embedded());
    } catch (error) {
      if (mode === 'embedded' || !bdKeepsTasks()) throw error;
      log('bd keeps the tasks of this project now', {});
      return work(bd);
    }
  };

  const whyEmbedded = async (): Promise<string> => {
    if (mode === 'embedded') return 'tracker.mode is embedded';
    const found = await calls.detect();
    return found.state === 'ok'
      ? `${found.detail} is installed; 'agent init' moves the tasks to it`
      : found.detail;
  };

  return {
    get name() {
      try {
        return bdKeepsTasks() ? 'bd' : 'embedded';
      } catch {
        return 'bd';
      }
    },
    actor,
    find: (id) => use((tracker) => tracker.find(id)),
    list: (urgency) => use((tracker) => tracker.list(urgency)),
    findMany: (ids) => use((tracker) => tracker.findMany(ids)),
    pageAtWork: (request, pending) => use((tracker) => tracker.pageAtWork(request, pending)),
    dependents: (id) => use((tracker) => tracker.dependents(id)),
    matching: (text, limit) => use((tracker) => tracker.matching(text, limit)),
    page: (request) => use((tracker) => tracker.page(request)),
    count: (request) => use((tracker) => tracker.count(request)),
    changes: (mark, done) => use((tracker) => tracker.changes(mark, done)),
    create: (task, requestId) => use((tracker) => tracker.create(safe.task(task), requestId)),
    prepare: (change, preparation) =>
      use((tracker) => tracker.prepare(safe.change(change), preparation)),
    claim: (id, fence) => use((tracker) => tracker.claim(id, fence)),
    release: (id, label, fence) => use((tracker) => tracker.release(id, label, fence)),
    close: (id, reason, fence) => use((tracker) => tracker.close(id, redact(reason), fence)),
    reopen: (id, fence) => use((tracker) => tracker.reopen(id, fence)),
    addDependency: (id, on) => use((tracker) => tracker.addDependency(id, on)),
    removeDependency: (id, on) => use((tracker) => tracker.removeDependency(id, on)),
    edit: (id, fields) => use((tracker) => tracker.edit(id, safe.fields(fields))),
    remove: (id) => use((tracker) => tracker.remove(id)),
    note: (id, text, fence) => use((tracker) => tracker.note(id, redact(text), fence)),
    unreadable: () => use((tracker) => tracker.unreadable()),
    check: async () => {
      try {
        if (bdKeepsTasks()) {
          const { ok, detail } = await bd.check();
          const sign = ownBdData(join(projectRoot, '.beads'));
          const why =
            sign === undefined
              ? 'tracker.mode is bd'
              : `bd keeps this project's tasks (.beads/${sign})`;
          return { ok, detail: `${detail}; ${why}` };
        }
        const { ok, detail } = await embedded().check();
        return { ok, detail: `${detail}; ${await whyEmbedded()}` };
      } catch (error) {
        return { ok: false, detail: messageOf(error) };
      }
    },
  };
};
