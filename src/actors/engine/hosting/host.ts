import {
  type AnyActorRef,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  createActor,
  type EventObject,
  waitFor,
} from 'xstate';
import { ServiceError } from '../../../machines/errors.ts';
import { messageOf } from '../../../machines/message-of.ts';
import { charts } from '../../journal/chart-versions.ts';
import { staleCommit } from '../../journal/commit-answer.ts';
import { durable } from '../../journal/durable-actor.ts';
import { entry } from '../../journal/event-types.ts';
import type { Journal } from '../../journal/journal.ts';
import { type HostedStart, hostedKey } from '../../journal/replay/replay.ts';
import { readEach, readSnapshot, restoredSnapshot } from '../../journal/snapshots.ts';
import type { Answer, Change, HostedKind, SavedActor, Store } from '../../store/port.ts';
import type { ActorRoot } from '../slots/actor-system.ts';
import { createRestoreRetries } from '../tasks/deadlines.ts';

/** A chart whose actors the host runs: one row in the store for each. */
interface HostedChart<Snapshot extends AnyMachineSnapshot> {
  readonly kind: HostedKind;
  /** Has the actors that it invokes; each can be repeated after a restart. */
  readonly machine: AnyStateMachine;
  readonly idOf: (context: Snapshot['context']) => string;
  /** Gives the data of an entry, beside the state of the chart. */
  readonly shown: (snapshot: Snapshot) => object;
  /** The rows of those that are not over. */
  readonly open: () => Answer<readonly SavedActor[]>;
  /** Called with each committed state, also the one that is taken up. */
  readonly published?: (snapshot: Snapshot) => void;
  /** Called when one is over. */
  readonly ended: (snapshot: Snapshot) => Promise<void>;
}

export interface HostPorts {
  readonly root: ActorRoot;
  /** This start of the server. */
  readonly node: string;
  readonly journal: Pick<Journal, 'commit' | 'deadline'>;
  readonly store: Pick<Store, 'actor'>;
  readonly now: () => number;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

/** One that `shown` cannot show is broken, too. @throws UnreadableStateError */
export const readHosted = <Snapshot extends AnyMachineSnapshot>(
  { machine, shown }: Pick<HostedChart<Snapshot>, 'machine' | 'shown'>,
  saved: SavedActor,
): Snapshot =>
  readSnapshot(saved, (kept) => {
    const state = machine.resolveState(kept as never) as Snapshot;
    shown(state);
    return state;
  });

type IsAnswered<Snapshot> = (snapshot: Snapshot) => boolean;

export interface Host<Snapshot extends AnyMachineSnapshot, Event extends EventObject, Input> {
  /**
   * Saves the first state, also over one that is over, then starts the actor and waits until `isAnswered`,
   * for a while.
   * @throws ServiceError when it cannot be saved
   */
  begin(input: Input, isAnswered: IsAnswered<Snapshot>): Promise<void>;
  /** The committed state; null: none has this id. @throws UnreadableStateError */
  stateOf(id: string): Promise<Snapshot | null>;
  /**
   * Ends one that cannot be restored, which keeps the state that was saved; `last` is the data of its
   * entry. @returns false when it can be restored, or is over
   */
  giveUp(id: string, last: object): Promise<boolean>;
  /**
   * Sends an event and waits until `isAnswered`, for a while. @returns false when this server does
   * not have the actor
   */
  send(id: string, event: Event, isAnswered: IsAnswered<Snapshot>): Promise<boolean>;
  /** Takes up what this server has, of an earlier start or of another server. */
  restore(): Promise<void>;
  /** Those that could not be restored, and are tried again. */
  failing(): ReadonlySet<string>;
  stop(): void;
}

interface Loaded {
  readonly actor: AnyActorRef;
  revision: number;
}

const answerMs = 30_000;

const createChanges =
  <Snapshot extends AnyMachineSnapshot>(
    { kind, machine, idOf, shown }: HostedChart<Snapshot>,
    now: () => number,
  ) =>
  (snapshot: Snapshot, revision: number, cause: unknown): Change => {
    const id = idOf(snapshot.context);
    const key = hostedKey(kind, id);
    const at = now();
    const data = { ...shown(snapshot), machine: kind, value: snapshot.value };
    return {
      actor: {
        id: key,
        taskId: id,
        version: charts.newest,
        changedAt: at,
        pending: snapshot.status === 'active',
        snapshot: JSON.stringify(machine.getPersistedSnapshot(snapshot)),
      },
      unchanged: { id: key, revision },
      entries: [entry(id, 0, kind, at, data, cause)],
    };
  };

/** The actors that are live here: each is stopped at its end, and restored when it fails. */
const createLiveActors = <Snapshot extends AnyMachineSnapshot>(
  { root, node, journal, store, now, log }: HostPorts,
  chart: HostedChart<Snapshot>,
) => {
  const { kind, machine, idOf, published = () => {}, ended } = chart;
  const loaded = new Map<string, Loaded>();
  const changeTo = createChanges(chart, now);
  let stopped = false;
  const logic = durable(machine, {
    now,
    commit: async ({ next, cause }) => {
      const own = loaded.get(idOf(next.context));
      const answer = await journal.commit(changeTo(next as Snapshot, own?.revision ?? 0, cause));
      if (answer === 'ok' && own !== undefined) own.revision += 1;
      return answer;
    },
    ...journal.deadline,
  });
  const forget = (id: string, own: Loaded): void => {
    if (loaded.get(id) === own) loaded.delete(id);
    root.stop(own.actor);
  };
  const retries = createRestoreRetries<string>(now, (id) => void takeUp(id));
  const load = (saved: SavedActor): AnyActorRef => {
    const id = saved.taskId;
    readHosted(chart, saved);
    const snapshot = restoredSnapshot(logic, saved);
    const wanted = { id: saved.id, parent: root.parent, snapshot, input: undefined };
    const actor: AnyActorRef = createActor(logic, wanted);
    const own: Loaded = { actor, revision: saved.revision };
    loaded.set(id, own);
    actor.subscribe({
      next: (state: Snapshot) => {
        published(state);
        if (state.status !== 'done') return;
        setImmediate(() => forget(id, own));
        ended(state).catch((error: unknown) =>
          log('could not tidy up after an end', { kind, id, error }),
        );
      },
      error: (error: unknown) => {
        forget(id, own);
        if (stopped) return;
        log('an actor failed; it is restored from its committed state', { kind, id, error });
        retries.later(id);
      },
    });
    actor.start();
    return actor;
  };
  const takeUp = async (id: string): Promise<void> => {
    try {
      const saved = await store.actor(hostedKey(kind, id));
      if (stopped) return;
      // What was saved without an answer may be its end.
      if (saved !== null && !loaded.has(id)) published(readHosted(chart, saved));
      if (saved?.pending === true && (saved.owner ?? node) === node && !loaded.has(id)) load(saved);
      retries.forget(id);
    } catch (error) {
      log('could not restore an actor; the server tries again', { kind, id, error });
      retries.later(id);
    }
  };
  return {
    changeTo,
    load,
    takeUp,
    find: (id: string) => loaded.get(id)?.actor,
    failing: retries.waiting,
    takeUpLater: retries.later,
    forgetFailure: retries.forget,
    stop: () => {
      stopped = true;
      retries.stop();
      for (const [id, own] of [...loaded]) forget(id, own);
    },
  };
};

/**
 * Hosts the actors of one chart beside those of tasks: each transition is committed before its
 * effects begin, and each actor that is not over is taken up again after a restart, here or on
 * another server.
 */
export const createHost = <Snapshot extends AnyMachineSnapshot, Event extends EventObject, Input>(
  ports: HostPorts,
  chart: HostedChart<Snapshot>,
): Host<Snapshot, Event, Input> => {
  const { node, journal, store, now } = ports;
  const { kind, machine, idOf, open } = chart;
  const live = createLiveActors(ports, chart);
  const answered = async (actor: AnyActorRef, isAnswered: IsAnswered<Snapshot>): Promise<void> => {
    await waitFor(actor, isAnswered, { timeout: answerMs }).catch(() => {});
  };
  return {
    begin: async (input, isAnswered) => {
      const first = createActor(machine, { input }).getSnapshot() as Snapshot;
      const cause: HostedStart = { type: 'xstate.init', input };
      try {
        const last = await store.actor(hostedKey(kind, idOf(first.context)));
        const revision = last?.pending === false ? last.revision : 0;
        const answer = await journal.commit(live.changeTo(first, revision, cause));
        const saved = await store.actor(hostedKey(kind, idOf(first.context)));
        if (answer !== 'ok' || saved === null) throw staleCommit();
        await answered(live.load(saved), isAnswered);
      } catch (error) {
        // It may be saved all the same.
        live.takeUpLater(idOf(first.context));
        const detail = `the ${kind} was not saved: ${messageOf(error)}`;
        throw new ServiceError('internal', { detail }, { cause: error });
      }
    },
    stateOf: async (id) => {
      const state = live.find(id)?.getSnapshot();
      if (state !== undefined && state.status !== 'error') return state;
      const saved = await store.actor(hostedKey(kind, id));
      return saved === null ? null : readHosted(chart, saved);
    },
    giveUp: async (id, last) => {
      const saved = await store.actor(hostedKey(kind, id));
      if (saved?.pending !== true || live.find(id) !== undefined) return false;
      if (readEach([saved], (each) => readHosted(chart, each)).length > 0) return false;
      const { owner: _owner, restores: _restores, revision, ...state } = saved;
      const at = now();
      const answer = await journal.commit({
        actor: { ...state, pending: false, changedAt: at },
        unchanged: { id: saved.id, revision },
        // Without a cause: no transition of its chart leads there.
        entries: [entry(id, 0, kind, at, { ...last, machine: kind })],
      });
      if (answer === 'ok') live.forgetFailure(id);
      return answer === 'ok';
    },
    send: async (id, event, isAnswered) => {
      // One that failed, or was saved without an answer, is taken up: nobody begins another in its place.
      if (live.find(id) === undefined) await live.takeUp(id);
      const actor = live.find(id);
      if (actor === undefined) return false;
      actor.send(event);
      await answered(actor, isAnswered);
      return true;
    },
    restore: async () => {
      for (const { taskId, owner } of await open())
        if (owner === node && !live.failing().has(taskId)) await live.takeUp(taskId);
    },
    failing: live.failing,
    stop: live.stop,
  };
};
