import type { Ledger, OwnTasks } from '../../src/actors/ledger/ledger.ts';
import type { Model, ModelEvent, ModelRequest, ToolCall } from '../../src/actors/model/port.ts';
import type { Results } from '../../src/actors/results/results.ts';
import type { Sandbox } from '../../src/actors/sandbox/port.ts';
import type { SqliteDatabase } from '../../src/actors/store/database.ts';
import { type Change, type Store, StoreError } from '../../src/actors/store/port.ts';
import type { SqliteStore } from '../../src/actors/store/sqlite.ts';
import { createEmbeddedTracker } from '../../src/actors/tracker/embedded/embedded.ts';
import { carryOut, type Tracker } from '../../src/actors/tracker/port.ts';
import { ServiceError } from '../../src/machines/errors.ts';
import { atOnce } from './at-once.ts';
import type { Clock } from './clock.ts';
import { createFarStore, type Fate } from './far-store.ts';
import type { Invariants } from './invariants.ts';
import type { Project } from './project.ts';
import type { Random } from './random.ts';
import type { SimulatedFile } from './simulated-file.ts';
import { testIn } from './test-in.ts';

/** What goes wrong around the server, as it changes with time. */
export interface Weather {
  trackerAway: boolean;
  diskFull: boolean;
  providerDown: boolean;
  /** The quota of the provider is used up until then (epoch ms), as far as the provider knows. */
  limitedUntil: number;
  /** How likely each act of the server is its last. */
  crash: number;
  /** Nothing goes wrong any more, and agents come to an end. */
  calm: boolean;
}

/** What outlives every server: the disk, and what happens to it. */
export interface World {
  readonly clock: Clock;
  readonly random: Random;
  readonly weather: Weather;
  readonly store: SqliteStore;
  readonly invariants: Invariants;
  readonly ledger: Ledger<SqliteDatabase>;
  readonly file: SimulatedFile;
  /** Undoes the transaction of this work at its end, as a crash does. */
  readonly cutOff: (work: () => void) => void;
  /** Null: nobody merges. */
  readonly project: Project | null;
  readonly results: Map<string, string>;
  /** The provider has limits. */
  readonly hasLimits: boolean;
  /** The store is far away: its answers come late, and not always. */
  readonly far: boolean;
  /** How long a commit is on its way to it, at most (ms). */
  readonly commitMs: number;
  /**
   * The tracker writes by itself, as bd does; else its changes are committed with the transitions.
   */
  readonly trackerWrites: boolean;
}

/** One life of the server; when it is dead, nothing that it does has an effect. */
export interface Life {
  alive: boolean;
  crash(): void;
}

class CrashError extends Error {
  override readonly name = 'CrashError';
}

const never = <Result>(): Promise<Result> => new Promise(() => {});

/**
 * Something asked of the world: it takes time to arrive, is done at one moment, and the answer
 * takes time again.
 */
export const through = <Result>(
  { clock, random, weather }: World,
  life: Life,
  atMostMs: number,
  act: () => Result | Promise<Result>,
): Promise<Result> => {
  if (!life.alive) return never();
  // What another process was asked for happens also when the asker has died in the meantime.
  const owner = random.chance(0.2) ? 'world' : 'server';
  return new Promise((resolve, reject) => {
    clock.after(owner, random.delay(atMostMs), () => {
      if (life.alive && random.chance(weather.crash)) return life.crash();
      const answerWith = (answer: () => void): void => {
        if (!life.alive) return;
        if (random.chance(weather.crash)) life.crash();
        else clock.after('server', random.delay(atMostMs), answer);
      };
      (async () => act())().then(
        (result) => answerWith(() => resolve(result)),
        (error: unknown) => answerWith(() => reject(error)),
      );
    });
  });
};

const fateOf = ({ weather, random }: World): Fate =>
  weather.calm || random.chance(0.97)
    ? 'answered'
    : random.pick(['failed before', 'failed after', 'stale', 'lost', 'late'] as const);

const farStoreOf = (world: World, life: Life, near: SqliteStore): Store => {
  const { clock, random } = world;
  const far = createFarStore(near, {
    fate: () => fateOf(world),
    delay: () => random.below(world.commitMs),
    after: (ms, run) => void clock.after('server', ms, run),
    lateMs: 5_000,
  });
  return { ...far, commit: (...changes) => (life.alive ? far.commit(...changes) : never()) };
};

export const storeOf = (world: World, life: Life): Store => {
  const near = nearStoreOf(world, life);
  return world.far ? farStoreOf(world, life, near) : near;
};

const nearStoreOf = (world: World, life: Life): SqliteStore => {
  const { store, weather, random, invariants, file } = world;
  /** A commit that comes again is not carried out again. */
  const carriedOut = new Set<string>();
  const isFirst = ([first]: readonly Change[]): boolean => {
    const id = first?.commit === undefined ? null : JSON.stringify(first.commit);
    const isNew = id === null || !carriedOut.has(id);
    if (id !== null) carriedOut.add(id);
    return isNew;
  };
  /** Changes of actors that are not as the changes left them. */
  const lostOf = (changes: readonly Change[]): readonly Change[] => {
    const seen = new Set<string>();
    return changes.filter(({ actor, guard }) => {
      if (actor === undefined || guard === undefined || seen.has(actor.id)) return false;
      seen.add(actor.id);
      return guard.revision !== (store.actor(actor.id)?.revision ?? 0);
    });
  };
  /** A crash in the transaction, before it is committed. */
  const cutOff = (changes: readonly Change[]): void => {
    world.cutOff(() => atOnce(store.commit(...changes)));
    for (const id of file.heldOf(changes))
      invariants.violated(`the file holds ${id} as it was never committed`);
  };
  return {
    ...store,
    subscribe: (listener, subscription) =>
      store.subscribe(
        {
          ...listener,
          entries: (entries) => (life.alive ? listener.entries(entries) : undefined),
        },
        subscription,
      ),
    commit: (...changes: readonly Change[]) => {
      if (!life.alive) throw new CrashError();
      if (random.chance(weather.crash)) {
        cutOff(changes);
        life.crash();
        throw new CrashError();
      }
      if (weather.diskFull) throw new StoreError('the disk is full');
      const lost = lostOf(changes);
      const committed = atOnce(store.commit(...changes));
      const saved = changes.filter((change) => !committed.stale.includes(change));
      const isNew = isFirst(changes);
      if (isNew && lost.some((change) => !committed.stale.includes(change)))
        invariants.violated('a commit that lost the race was carried out');
      if (!isNew && committed.entries.length > 0)
        invariants.violated('I10 a commit that came again was carried out again');
      invariants.committed(isNew ? saved : [], committed.entries);
      if (random.chance(weather.crash)) {
        life.crash();
        throw new CrashError();
      }
      return committed;
    },
  };
};

/** The embedded tracker, as far away as a program that must be started for each call. */
export const trackerOf = (world: World, life: Life): Tracker => {
  const { clock, random, weather, ledger, invariants } = world;
  const real = createEmbeddedTracker({ clock: clock.now, random: random.below }, ledger);
  const asked = <Result>(
    atMostMs: number,
    act: () => Promise<Result>,
    loses = false,
  ): Promise<Result> =>
    through(world, life, atMostMs, async () => {
      if (weather.trackerAway)
        throw new ServiceError('tracker_unavailable', { detail: 'it is away', remedy: 'wait' });
      const result = await act();
      // Done, but the answer is lost: the server must ask again.
      if (loses && !weather.calm && random.chance(0.03))
        throw new ServiceError('tracker_unavailable', {
          detail: 'it did not answer',
          remedy: 'try again',
        });
      return result;
    });
  const looks = <Result>(act: () => Promise<Result>): Promise<Result> => asked(40, act);
  const writes = <Result>(act: () => Promise<Result>): Promise<Result> => asked(400, act, true);
  const told = (what: 'claim' | 'close', id: string): void => {
    if (life.alive) invariants.told(id, what);
  };
  const tracker: Tracker = {
    ...real,
    list: () => looks(real.list),
    find: (id) => looks(() => real.find(id)),
    findMany: (ids) => looks(() => real.findMany(ids)),
    dependents: (id) => looks(() => real.dependents(id)),
    page: (request) => looks(() => real.page(request)),
    count: (request) => looks(() => real.count(request)),
    changes: (mark, done) => looks(() => real.changes(mark, done)),
    check: () => looks(real.check),
    create: (task) => writes(() => real.create(task)),
    claim: (id, fence) => {
      told('claim', id);
      return writes(() => real.claim(id, fence));
    },
    release: (id, label, fence) => writes(() => real.release(id, label, fence)),
    close: (id, reason, fence) => {
      told('close', id);
      return writes(() => real.close(id, reason, fence));
    },
    reopen: (id, fence) => writes(() => real.reopen(id, fence)),
    prepare: async (change, preparation) => {
      if (!world.trackerWrites) return looks(() => real.prepare(change, preparation));
      await preparation.committed();
      return carryOut(tracker, change, preparation.fence);
    },
  };
  return tracker;
};

/** The tables of a project whose file nobody else changes. */
export const ledgerWith = (
  db: SqliteDatabase,
  { table }: OwnTasks,
  file: SimulatedFile,
): Ledger<SqliteDatabase> => ({
  db,
  table,
  requireOurs: () => {},
  exchange: {
    refresh: async () => {},
    changed: file.changed,
    flush: file.flush,
    problem: async () => null,
    unkept: async () => null,
    alone: (work) => work(),
    stop: async () => {},
  },
});

export const resultsOf = (world: World, life: Life): Results => ({
  read: (taskId) => through(world, life, 20, () => world.results.get(taskId) ?? null),
  write: ({ task, attempt }) =>
    through(world, life, 200, () => {
      if (world.weather.diskFull)
        throw Object.assign(new Error('ENOSPC: no space left on device'), { errno: -28 });
      world.invariants.wroteResults(task.id, attempt);
      world.results.set(task.id, `results of attempt ${attempt}`);
    }),
  noteMerge: async () => {},
  logsOf: () => null,
  openLog: () => ({ push: () => {}, close: () => null }),
});

/**
 * Must pass before a task may complete, and never does: the work is sent back, and fails at last.
 */
export const verifyCommand = 'npm test';

/** Commands are not run: that they were about to be is all that counts here. */
export const sandboxOf = (world: World, life: Life): Sandbox => ({
  describe: () => 'simulated',
  check: () => ({ ok: true, detail: 'simulated' }),
  confine: async ({ argv, env, root }) => {
    const { invariants, random, weather } = world;
    if (!life.alive) throw new CrashError();
    const test = testIn(world, root);
    if (test !== null) return { argv: test, cwd: root, env };
    const mark = (env['ATS_ATTEMPT'] ?? '').split('/').at(-1) ?? '';
    const [taskId = '', attempt = ''] = mark.split('#');
    const command = argv.at(-1) ?? '';
    if (command !== verifyCommand) invariants.ran(taskId, Number(attempt), command);
    // Between what is done and its result in the journal is where a crash hurts most.
    if (random.chance(5 * weather.crash)) {
      life.crash();
      throw new CrashError();
    }
    return { refusal: 'it is not really run' };
  },
});

const usage = { inputTokens: 100, outputTokens: 10, cachedTokens: 0 };
const answered = (...calls: readonly ToolCall[]): ModelEvent => ({
  type: 'answered',
  text: '',
  calls,
  truncated: false,
  usage,
});
const failed = (retryable: boolean): ModelEvent => ({
  type: 'failed',
  failure: {
    code: 'model_failed',
    message: 'overloaded',
    facts: { kind: 'overloaded' },
    retryable,
  },
});

const usedUp = (ms: number): ModelEvent => ({
  type: 'failed',
  failure: {
    code: 'model_failed',
    message: 'the quota is used up',
    facts: { kind: 'insufficient_quota', retry_after_ms: ms },
    retryable: true,
  },
});

export const modelOf = (world: World, life: Life): Model => {
  const { clock, random, weather, invariants } = world;
  const sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const timer = clock.after('server', ms, resolve);
      signal?.addEventListener('abort', () => {
        clock.cancel(timer);
        // It ends promptly, but not at once.
        clock.after('server', random.delay(2_000), resolve);
      });
    });
  const call = (tool: string, id: string, args: object): ToolCall => ({
    id,
    tool,
    arguments: JSON.stringify(args),
  });
  const commands = (key: string): ModelEvent =>
    answered(
      ...Array.from({ length: 1 + random.below(2) }, (_, n) =>
        call('bash', `${key}/${n}`, { command: `${key}/${n}` }),
      ),
    );

  const answer = (key: string): ModelEvent | 'nothing' => {
    if (weather.limitedUntil > clock.now()) return usedUp(weather.limitedUntil - clock.now());
    if (weather.providerDown) return failed(true);
    const draw = random.below(100) - (weather.calm ? 30 : world.project === null ? 0 : 25);
    if (draw < 32) return answered(call('finish', key, { status: 'done', summary: 'done' }));
    if (draw < 70) return commands(key);
    if (draw < 78) return answered(call('ask', key, { question: 'Which one?' }));
    if (draw < 84) return failed(true);
    if (draw < 88) return answered(call('finish', key, { status: 'failed', summary: 'no' }));
    if (draw < 92) return answered();
    return draw < 96 ? failed(false) : 'nothing';
  };

  return {
    name: 'simulated',
    // The scripted model has one, and no limits.
    disclaimer: world.hasLimits ? null : 'no model was called',
    async *ask({ idempotencyKey, asker, messages }: ModelRequest, signal: AbortSignal) {
      if (!life.alive) await never();
      const step = idempotencyKey.slice(idempotencyKey.lastIndexOf('/') + 1);
      const said = JSON.stringify(messages);
      if (signal.aborted)
        invariants.violated(`I1 ${idempotencyKey} is asked after it was given up`);
      const ended = invariants.asked(asker.taskId, asker.attempt, step, said);
      try {
        await sleep(random.delay(8_000), signal);
        if (signal.aborted) return;
        const event = answer(idempotencyKey);
        if (event === 'nothing') await sleep(10 ** 9, signal);
        else {
          yield { type: 'text', delta: 'I look.' };
          yield event;
        }
      } finally {
        if (life.alive) ended();
      }
    },
  };
};
