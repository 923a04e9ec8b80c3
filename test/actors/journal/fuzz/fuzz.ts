import { type ActorRefFrom, type AnyActorRef, createActor, fromTransition } from 'xstate';
import type { durable } from '../../../../src/actors/journal/durable-actor.ts';
import type { CommitAnswer } from '../../../../src/actors/store/port.ts';
import { createClock } from '../../../simulation/clock.ts';
import { randomFrom } from '../../../simulation/random.ts';
import { createToyChart, type JobInput } from './toy-chart.ts';

export interface FuzzReport {
  readonly violations: readonly string[];
  readonly commits: number;
  readonly effects: number;
  readonly restores: number;
  /** How often the store answered in each way. */
  readonly answers: Readonly<Record<string, number>>;
}

interface Row {
  readonly snapshot: unknown;
  readonly revision: number;
  readonly status: string;
}

interface Life {
  readonly name: string;
  actor: AnyActorRef | null;
  /** Expected by the next commit. */
  revision: number;
  /** Number of the last event that was taken. */
  taken: number;
}

const deadlineMs = 100;
const horizonMs = 3_000;
const patienceMs = 5_000;
const names = ['one', 'two', 'three'] as const;

/**
 * Three toy actors over a store that answers late, in any order, stale, with an error before or
 * after, or never.
 */
export const fuzz = async (seed: number, makeDurable: typeof durable): Promise<FuzzReport> => {
  const random = randomFrom(seed);
  const clock = createClock(0);
  const violations: string[] = [];
  const wrong = (what: string): void => {
    if (violations.length < 5) violations.push(`${what} at ${clock.now()}`);
  };
  const committed = new Set<number>([0]);
  const rows = new Map<string, Row>();
  const answers: Record<string, number> = {};
  const running = new Map<string, Set<JobInput>>();
  let transitions = 0;
  let handedOver = 0;
  let events = 0;
  let commits = 0;
  let effects = 0;
  let restores = 0;
  let calm = false;

  const did = (what: string, transition: number): void => {
    effects += 1;
    if (!committed.has(transition)) wrong(`${what} of ${transition} before its commit`);
  };

  const root = createActor(
    fromTransition(
      (
        state: null,
        event: { type: string; child?: AnyActorRef; output?: number },
        { stopChild },
      ) => {
        if (event.type === 'stop' && event.child !== undefined) stopChild(event.child);
        if (event.type.startsWith('xstate.done')) did('the end', event.output ?? -1);
        return state;
      },
      null,
    ),
    {
      clock: {
        setTimeout: (run: () => void, ms: number) => clock.after('server', ms, run),
        clearTimeout: (id: number) => clock.cancel(id),
      },
      inspect: (event) => {
        if (event.type !== '@xstate.snapshot') return;
        const { context } = event.snapshot as {
          readonly context?: { readonly transition: number } | null;
        };
        if (context?.transition !== undefined)
          did('a snapshot in the inspector', context.transition);
      },
    },
  ).start();
  const peer = createActor(
    fromTransition((state: null, event: { type: string; transition: number }) => {
      if (event.type === 'told') did('a message', event.transition);
      return state;
    }, null),
  ).start();

  const chart = createToyChart({
    now: clock.now,
    nameTransition: () => (transitions += 1),
    did,
    wrong,
    peer: () => peer,
    helps: (transition) => {
      did('a helper', transition);
      return () => {};
    },
    job: (input, signal) => {
      did('a job', input.transition);
      const own = running.get(input.actor) ?? new Set();
      running.set(input.actor, own.add(input));
      if (own.size > 1) wrong(`${own.size} jobs of ${input.actor} at once`);
      signal.addEventListener('abort', () => own.delete(input));
      return new Promise((resolve, reject) => {
        clock.after('server', random.below(80), () => {
          if (!own.delete(input)) return;
          if (random.chance(0.3)) reject(new Error('the job failed'));
          else resolve(input.transition);
        });
      });
    },
  });

  const write = (
    name: string,
    expected: number,
    row: Omit<Row, 'revision'>,
    named: readonly number[],
  ): CommitAnswer => {
    if ((rows.get(name)?.revision ?? 0) !== expected) return 'stale';
    rows.set(name, { ...row, revision: expected + 1 });
    for (const transition of named) committed.add(transition);
    commits += 1;
    return 'ok';
  };
  const after = (ms: number, act: () => CommitAnswer): Promise<CommitAnswer> =>
    new Promise((resolve) => clock.after('world', ms, () => resolve(act())));
  const failAfter = (ms: number, act: () => unknown): Promise<CommitAnswer> =>
    new Promise((_, reject) =>
      clock.after('world', ms, () => {
        act();
        reject(new Error('the store failed'));
      }),
    );

  type Kind = 'at once' | 'later' | 'stale' | 'failed' | 'failed after' | 'never' | 'late';
  const answer: Readonly<
    Record<Kind, (ms: number, act: () => CommitAnswer) => CommitAnswer | Promise<CommitAnswer>>
  > = {
    'at once': (_, act) => act(),
    later: after,
    stale: (ms) => after(ms, () => 'stale'),
    failed: (ms) => failAfter(ms, () => {}),
    'failed after': failAfter,
    never: (ms, act) => {
      if (random.chance(0.5)) clock.after('world', 3 * ms, act);
      return new Promise(() => {});
    },
    late: (ms, act) => after(deadlineMs + ms, act),
  };
  const answerOf = (act: () => CommitAnswer): CommitAnswer | Promise<CommitAnswer> => {
    const kind: Kind =
      calm || random.chance(0.85)
        ? random.pick(['at once', 'later', 'later', 'later'])
        : random.pick(['stale', 'failed', 'failed after', 'never', 'late']);
    answers[kind] = (answers[kind] ?? 0) + 1;
    return answer[kind](random.below(50), act);
  };

  const lives: Life[] = names.map((name) => ({ name, actor: null, revision: 0, taken: 0 }));

  const logicOf = (life: Life) =>
    makeDurable(chart, {
      now: clock.now,
      deadlineMs,
      later: (run, ms) => {
        const timer = clock.after('server', ms, run);
        return () => clock.cancel(timer);
      },
      commit: ({ next, cause }) => {
        const { n } = cause as { n?: number };
        if (n !== undefined && n <= life.taken)
          wrong(`event ${n} of ${life.name} was taken after ${life.taken}`);
        life.taken = Math.max(life.taken, n ?? 0);
        const snapshot: unknown = JSON.parse(JSON.stringify(chart.getPersistedSnapshot(next)));
        // One macrostep may have several transitions; they are committed together.
        const named = Array.from(
          { length: transitions - handedOver },
          (_, n) => handedOver + n + 1,
        );
        handedOver = transitions;
        const expected = life.revision;
        life.revision += 1;
        return answerOf(() => write(life.name, expected, { snapshot, status: next.status }, named));
      },
    });

  const isRunning = (life: Life): boolean => life.actor?.getSnapshot().status === 'active';

  const start = (life: Life): void => {
    const row = rows.get(life.name);
    if (row !== undefined && row.status !== 'active') return;
    // What an earlier actor sent may still arrive: from now on it is stale.
    if (row !== undefined) rows.set(life.name, { ...row, revision: row.revision + 1 });
    life.revision = rows.get(life.name)?.revision ?? 0;
    life.taken = events;
    restores += 1;
    const actor: ActorRefFrom<typeof chart> = createActor(logicOf(life), {
      id: life.name,
      parent: root,
      input: { actor: life.name },
      ...(row === undefined ? {} : { snapshot: row.snapshot as never }),
    });
    life.actor = actor;
    actor.on('moved', ({ transition }) => did('an emitted event', transition));
    actor.subscribe({
      next: ({ context }) => did('a snapshot', context.transition),
      error: () => {
        if ((running.get(life.name)?.size ?? 0) > 0)
          wrong(`a job of ${life.name} is left after its end`);
        clock.after('server', 20, () => start(life));
      },
    });
    actor.start();
  };

  const stop = (life: Life): void => {
    if (!isRunning(life) || life.actor === null) return;
    root.send({ type: 'stop', child: life.actor });
    if ((running.get(life.name)?.size ?? 0) > 0)
      wrong(`a job of ${life.name} is left after its stop`);
    clock.after('server', random.below(100), () => start(life));
  };

  const send = (life: Life, type: string): void => {
    events += 1;
    if (isRunning(life)) life.actor?.send({ type, n: events });
  };
  const act = (): void => {
    const life = random.pick(lives as [Life, ...Life[]]);
    if (random.chance(0.04)) stop(life);
    else send(life, random.pick(['go', 'go', 'go', 'again', 'back', 'poke', 'help', 'note.one']));
  };

  for (const life of lives) start(life);
  for (let n = 0; n < 120; n += 1) clock.after('world', random.below(horizonMs), act);
  const play = async (until: () => boolean): Promise<void> => {
    while (violations.length === 0 && !until() && clock.step()) await clock.settle();
  };
  await play(() => clock.now() >= horizonMs);
  calm = true;
  await play(() => clock.now() >= horizonMs + 4 * deadlineMs);
  for (const life of lives) if (!isRunning(life)) start(life);
  const isOver = (): boolean => lives.every(({ name }) => rows.get(name)?.status === 'done');
  const end = clock.now() + patienceMs;
  const cancel = (): void => {
    for (const life of lives) send(life, 'cancel');
    if (!isOver() && clock.now() < end) clock.after('world', 100, cancel);
  };
  cancel();
  await play(() => isOver() || clock.now() >= end);
  if (!isOver()) wrong(`a cancel did not end: ${lives.map(({ name }) => rows.get(name)?.status)}`);
  for (const { name } of lives)
    if ((running.get(name)?.size ?? 0) > 0) wrong(`a job of ${name} is left at the end`);
  return { violations, commits, effects, restores, answers };
};
