import { createHash } from 'node:crypto';
import { differenceFrom } from '../../src/actors/journal/replay/replay.ts';
import { shownIn } from '../../src/actors/journal/transition-frames.ts';
import { createOwnTasks } from '../../src/actors/ledger/ledger.ts';
import { checkJournal } from '../../src/actors/store/check-journal.ts';
import { openDatabase, type SqliteDatabase } from '../../src/actors/store/database.ts';
import type { SavedActor } from '../../src/actors/store/port.ts';
import { createHistories } from '../../src/actors/store/rows/histories.ts';
import { createSqliteStore } from '../../src/actors/store/sqlite.ts';
import type { TaskId } from '../../src/machines/task.ts';
import { statusInTracker } from '../../src/machines/tracked-task.ts';
import { atOnce } from './at-once.ts';
import { createClock } from './clock.ts';
import { createInvariants } from './invariants.ts';
import { type Server, startServer } from './life.ts';
import { createOldFile } from './old-file.ts';
import { createPeople } from './people.ts';
import { createProject } from './project.ts';
import { randomFrom } from './random.ts';
import { createSimulatedFile } from './simulated-file.ts';
import { drawTraits, type Traits } from './traits.ts';
import { watchParked } from './watch-parked.ts';
import { ledgerWith, type Weather, type World } from './world.ts';

/** A database whose transactions can be cut off at their end. */
const openCuttable = (): { readonly db: SqliteDatabase; readonly cutOff: World['cutOff'] } => {
  const db = openDatabase({ file: ':memory:' });
  let isCut = false;
  return {
    db: {
      ...db,
      write: (work) =>
        db.write(function* () {
          const result = yield* work();
          if (isCut) throw new Error('cut off');
          return result;
        }),
    },
    cutOff: (work) => {
      isCut = true;
      try {
        work();
      } catch {}
      isCut = false;
    },
  };
};

/** What came of one seed. */
export interface Report {
  readonly seed: number;
  /** What was broken, or nothing. */
  readonly violations: readonly string[];
  readonly entries: number;
  readonly lives: number;
  readonly attempts: number;
  readonly completed: number;
  /** Work that landed on the branch. */
  readonly landed: number;
  /** How much time passed in the simulated world (ms). */
  readonly virtualMs: number;
  /** Of the whole journal: the same seed gives the same one. */
  readonly hash: string;
  readonly log: readonly string[];
}

const start = Date.UTC(2026, 0, 1);
const minute = 60_000;
/** So long after everything has become calm, nothing may be on its way any more. */
/** Age of histories that go. */
const oldMs = minute;
const oldFileMs = 7_000;
const lookMs = 1_000;
const longestLimitMs = 10 * minute;
const patienceMs = 60 * minute;

/**
 * One world, played from its beginning to its end; everything that chance decides follows from the
 * seed.
 */
export const simulate = async (
  seed: number,
  far = false,
  fixed: Partial<Traits> = {},
): Promise<Report> => {
  const random = randomFrom(seed);
  const clock = createClock(start);
  const restoreTime = clock.install();
  const traits: Traits = { ...drawTraits(seed, random), ...fixed };
  const { maxTasks, horizonMs, trackerWrites, hasLimits } = traits;
  const { db, cutOff } = openCuttable();
  const tasks = createOwnTasks(db, '/simulated');
  const store = createSqliteStore({ file: db.file, tasks, redact: (text) => text }, db);
  const weather: Weather = {
    trackerAway: false,
    diskFull: false,
    providerDown: false,
    limitedUntil: 0,
    crash: traits.crash,
    calm: false,
  };
  const file = createSimulatedFile(db, tasks, weather);
  const project = traits.merges ? createProject(random) : null;
  const world: World = {
    clock,
    random,
    store,
    weather,
    file,
    cutOff,
    invariants: createInvariants(traits, store, {
      far,
      isInTransaction: !trackerWrites,
      tracked: (id) => db.ask(tasks.table.tracked(id)),
      project,
    }),
    ledger: ledgerWith(db, tasks, file),
    project,
    results: new Map(),
    hasLimits,
    far,
    commitMs: traits.commitMs,
    trackerWrites,
  };
  const { invariants } = world;
  let server = null as Server | null;
  let lives = 0;
  const people = createPeople(world, () => server, maxTasks, traits.waitsWhenAsked);

  const boot = (): void => {
    lives += 1;
    file.open();
    const born = startServer(world, traits, () => {
      server = null;
      clock.after('world', 100 + random.delay(20_000), boot);
    });
    server = born;
    born.system.start().then(
      () => {
        if (born.alive) people.askAgain();
      },
      (error: unknown) => {
        if (born.alive)
          invariants.violated(
            `the server did not start: ${error instanceof Error ? error.stack : error}`,
          );
      },
    );
  };
  /** As by SIGTERM: it stops in its own time. */
  const stopAndStart = (): void => {
    const ending = server;
    if (ending === null) return;
    const end = async (): Promise<void> => {
      await ending.system.drain(random.chance(0.5) ? 0 : 5_000);
      await ending.system.stop();
    };
    end().then(
      () => ending.crash(),
      (error: unknown) => {
        if (ending.alive)
          invariants.violated(
            `the server did not stop: ${error instanceof Error ? error.stack : error}`,
          );
      },
    );
  };
  const badWeather = (): void => {
    const kind = random.pick(['trackerAway', 'trackerAway', 'providerDown', 'diskFull'] as const);
    weather[kind] = true;
    clock.after('world', random.delay(kind === 'diskFull' ? 3_000 : 40_000), () => {
      weather[kind] = false;
    });
  };

  /** The provider names a time; sometimes somebody pays before. */
  const limit = (): void => {
    const ms = random.delay(longestLimitMs);
    weather.limitedUntil = clock.now() + ms;
    if (random.chance(0.5))
      clock.after('world', random.delay(ms), () => {
        weather.limitedUntil = 0;
      });
  };

  /** A dependency failed, or nobody asks for it. */
  const waitsForever = ({ taskId, snapshot }: SavedActor): boolean =>
    JSON.stringify(JSON.parse(snapshot).value) === '{"queued":"waitingForDependencies"}' &&
    db.ask(tasks.table.tracked(taskId))?.unmet.length !== 0;

  const histories = createHistories(db);
  /** As the server does it once a day, with minutes in place of days. */
  const removeHistories = (): void => {
    const before = clock.now() - oldMs;
    for (const { taskId, pending } of store.tasks('all')) {
      if (!atOnce(histories.mark(taskId, before, { at: clock.now(), days: 1 }))) continue;
      if (pending) invariants.violated(`the history of the pending ${taskId} was removed`);
      while (atOnce(histories.removeSome(taskId)));
    }
    clock.after('world', minute, removeHistories);
  };

  const importOldFile = createOldFile(world);
  const bringOldFile = (): void => {
    importOldFile();
    if (!weather.calm) clock.after('world', oldFileMs, bringOldFile);
  };

  const lookAtFile = (): void => {
    const isWritable = server !== null && !weather.diskFull;
    for (const id of file.overdue(isWritable ? clock.now() : null))
      invariants.violated(`the file does not hold ${id} as it is`);
    clock.after('world', lookMs, lookAtFile);
  };

  const play = async (until: () => boolean): Promise<void> => {
    while (invariants.violations.length === 0 && !until()) {
      if (!clock.step()) break;
      await clock.settle();
      if (server === null) clock.forgetServer();
    }
  };

  try {
    boot();
    clock.after('world', lookMs, lookAtFile);
    if (traits.removesHistories) clock.after('world', minute, removeHistories);
    if (traits.hasOldFile) clock.after('world', oldFileMs, bringOldFile);
    for (let n = 2 + random.below(maxTasks); n > 0; n -= 1)
      clock.after('world', random.delay(5_000), people.create);
    for (let n = 20 + random.below(60); n > 0; n -= 1)
      clock.after('world', random.below(horizonMs), people.act);
    for (let n = traits.storms; n > 0; n -= 1)
      clock.after('world', random.below(horizonMs), badWeather);
    if (random.chance(0.3)) clock.after('world', random.below(horizonMs), stopAndStart);
    if (hasLimits) {
      for (let n = 1 + random.below(3); n > 0; n -= 1)
        clock.after('world', random.below(horizonMs), limit);
      watchParked(world, () => server?.system ?? null);
    }
    await play(() => clock.now() >= start + horizonMs);

    Object.assign(weather, {
      trackerAway: false,
      diskFull: false,
      providerDown: false,
      limitedUntil: 0,
      crash: 0,
      calm: true,
    });
    const openQueues = (): number => atOnce(store.openHosted('mergeQueue')).length;
    const isQuiet = (): boolean =>
      server !== null && store.tasks('pending').every(waitsForever) && openQueues() === 0;
    const playFor = async (ms: number): Promise<void> => {
      const end = clock.now() + ms;
      await play(() => clock.now() >= end);
    };
    // First what was still under way arrives, at last the watch sees what came of it.
    await playFor(30_000);
    for (
      const end = clock.now() + patienceMs;
      !isQuiet() && clock.now() < end && invariants.violations.length === 0;
    ) {
      people.answerAll();
      await playFor(20_000);
    }
    await playFor(30_000);
    if (project !== null) {
      people.mergers.mergeAll();
      await playFor(20 * minute);
      if (invariants.violations.length === 0) judgeMerges();
    }
    if (invariants.violations.length === 0) await judge();
  } finally {
    server?.crash();
    await clock.settle();
    restoreTime();
  }

  function judgeMerges(): void {
    for (const what of people.mergers.waiting())
      invariants.violated(`M7 ${what} was never answered`);
    for (const { taskId, snapshot } of atOnce(store.openHosted('mergeQueue')))
      invariants.violated(`M8 ${taskId} is still ${JSON.parse(snapshot).value}, and all is calm`);
    invariants.merges.atEnd();
  }

  async function judge(): Promise<void> {
    for (const { taskId, seq, problem } of (await checkJournal(db)).faults)
      invariants.violated(`the journal: entry ${seq} of ${taskId} ${problem}`);
    for (const saved of store.tasks('pending'))
      if (!waitsForever(saved))
        invariants.violated(
          `stuck: ${saved.taskId} is still ${JSON.stringify(JSON.parse(saved.snapshot).value)} an hour after all is calm`,
        );
    for (const { taskId } of store.tasks('all')) {
      const difference = await differenceFrom(store, taskId as TaskId);
      if (difference !== null) invariants.violated(`fold(journal) of ${taskId}: ${difference}`);
    }
    for (const id of file.differences())
      invariants.violated(`the file does not hold ${id} as it is`);
    for (const id of people.created) {
      const tracked = db.ask(tasks.table.tracked(id));
      if (tracked === null) {
        invariants.violated(`I10 ${id} is lost`);
        continue;
      }
      if (tracked.status === 'in_progress' && tracked.assignee === 'agent-server')
        invariants.violated(`I14 the tracker says that ${id} is started, and nothing of it runs`);
      const isOnlyOurs = !people.touched.has(id) && !traits.hasOldFile;
      if (isOnlyOurs && invariants.rowOf(id)?.value === 'complete' && tracked.status !== 'closed')
        invariants.violated(`I14 ${id} is complete and is ${tracked.status} in the tracker`);
      const latest = store.latest(id, 'snapshot');
      const shown = latest === null ? null : shownIn(latest.data).status;
      // A label of an earlier end stays until the next attempt has a slot.
      const isWaiting = store.actor(id)?.pending === true;
      if (shown !== null && !isWaiting && shown !== statusInTracker(tracked))
        invariants.violated(
          `I14 ${id} is shown as ${shown} and is ${statusInTracker(tracked)} in the tracker`,
        );
    }
  }

  const entries = store.read({ after: 0, limit: 100_000 });
  /** The ids of queues are random: they are named in the order in which they began. */
  const queues = new Map<string, string>();
  const nameOf = (id: string): string => {
    if (!id.startsWith('mq-')) return id;
    const name = queues.get(id) ?? `mq-${queues.size + 1}`;
    queues.set(id, name);
    return name;
  };
  const log = entries.map(
    ({ seq, at, taskId, attempt, type, data }) =>
      `${seq} ${at - start} ${nameOf(taskId)}#${attempt} ${type} ${data}`,
  );
  const attempts = invariants
    .taskIds()
    .reduce((sum, id) => sum + (invariants.rowOf(id)?.context.attempt ?? 0), 0);
  store.close();
  return {
    seed,
    violations: invariants.violations,
    entries: entries.length,
    lives,
    attempts,
    completed: entries.filter(({ type }) => type === 'completed').length,
    landed: project?.landedSince('m0').length ?? 0,
    virtualMs: clock.now() - start,
    hash: createHash('sha256').update(log.join('\n')).digest('hex').slice(0, 16),
    log,
  };
};
