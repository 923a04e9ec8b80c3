import type {
  AnyActorRef,
  AnyActorScope,
  AnyMachineSnapshot,
  AnyStateMachine,
  EventObject,
  SnapshotFrom,
} from 'xstate';
import type { CommitAnswer } from '../store/port.ts';
import { type CommitDeadline, staleCommit } from './commit-answer.ts';
import { childrenOf, stopChildren } from './end-children.ts';
import { stampEvent } from './event-data.ts';
import { holdEffects } from './held-effects.ts';
import {
  createHeldTransitions,
  type HeldTransition,
  type HeldTransitions,
  isAnswered,
  nextTurnType,
  type QueuedEvent,
  type TransitionAnswered,
} from './held-transitions.ts';
import { takeRequest } from './requests.ts';

/** A transition before it is shown. */
export interface PendingTransition<Snapshot> {
  readonly next: Snapshot;
  readonly cause: EventObject;
  readonly previous: Snapshot;
  /** Id of the request that the cause carries out. */
  readonly requestId: string | null;
}

export interface CommitPort<Machine extends AnyStateMachine> extends CommitDeadline {
  now(): number;
  /** Makes the transition durable. Without an answer in time, the actor ends in error. */
  commit(
    transition: PendingTransition<SnapshotFrom<Machine>>,
  ): CommitAnswer | Promise<CommitAnswer>;
}

const changed = (previous: AnyMachineSnapshot, next: AnyMachineSnapshot): boolean =>
  previous.context !== next.context ||
  previous.status !== next.status ||
  previous.children !== next.children ||
  JSON.stringify(previous.value) !== JSON.stringify(next.value);

const childOf = (
  snapshot: AnyMachineSnapshot,
  event: EventObject & { readonly actorId?: unknown },
) => {
  const children: Readonly<Record<string, AnyActorRef | undefined>> = snapshot.children;
  return typeof event.actorId === 'string' ? children[event.actorId] : undefined;
};

type Receive = (
  snapshot: AnyMachineSnapshot,
  event: EventObject,
  scope: AnyActorScope,
) => AnyMachineSnapshot;

/** Gives a transition to the store; it is pending until a late answer has come. */
const createCommit =
  <Machine extends AnyStateMachine>(
    port: CommitPort<Machine>,
    pending: Pick<HeldTransitions, 'add'>,
  ) =>
  (
    held: HeldTransition,
    cause: EventObject,
    previous: AnyMachineSnapshot,
    scope: AnyActorScope,
  ): CommitAnswer | Promise<CommitAnswer> => {
    try {
      const requestId = held.request?.id ?? null;
      const answer = port.commit({
        next: held.next as never,
        cause,
        previous: previous as never,
        requestId,
      });
      if (answer === 'stale') throw staleCommit();
      if (answer !== 'ok') pending.add(answer, held, cause, scope);
      return answer;
    } catch (error) {
      stopChildren(scope, held.next);
      throw error;
    }
  };

const createReceiver = <Machine extends AnyStateMachine>(
  machine: Machine,
  port: CommitPort<Machine>,
) => {
  const pending = createHeldTransitions(port);

  const publish = (held: HeldTransition, scope: AnyActorScope): AnyMachineSnapshot => {
    held.effects.release();
    if (held.request !== undefined) scope.defer(held.request.published);
    pending.end(held, scope);
    return held.next;
  };

  const commit = createCommit(port, pending);

  const take = (
    { event, child, request }: QueuedEvent,
    snapshot: AnyMachineSnapshot,
    scope: AnyActorScope,
  ) => {
    const effects = holdEffects(scope);
    // The end of a child that was stopped meanwhile counts no more; XState alone would not deliver
    // it.
    const isOver = child !== undefined && childOf(snapshot, event) !== child;
    if (isOver || request?.refused(snapshot) === true)
      return publish({ next: snapshot, effects, request: undefined }, scope);
    const held: HeldTransition = {
      next: machine.transition(snapshot, event, effects.scope),
      effects,
      request,
    };
    const isOk = !changed(snapshot, held.next) || commit(held, event, snapshot, scope) === 'ok';
    return isOk ? publish(held, scope) : snapshot;
  };

  const takeNext = (snapshot: AnyMachineSnapshot, scope: AnyActorScope): AnyMachineSnapshot => {
    const queued = pending.next(scope.self);
    return queued === undefined ? snapshot : take(queued, snapshot, scope);
  };

  const receiveAnswer = (
    snapshot: AnyMachineSnapshot,
    { held, error }: TransitionAnswered,
    scope: AnyActorScope,
  ) => {
    if (!pending.isPending(scope.self, held)) return snapshot;
    if (error !== undefined) throw error;
    return publish(held, scope);
  };

  const receive: Receive = (snapshot, event, scope) => {
    if (isAnswered(event)) return receiveAnswer(snapshot, event, scope);
    if (event.type === nextTurnType) return takeNext(snapshot, scope);
    const arrived = { event: stampEvent(event, port.now), request: takeRequest(event) };
    if (!pending.has(scope.self)) return take({ ...arrived, child: undefined }, snapshot, scope);
    pending.wait(scope.self, { ...arrived, child: childOf(snapshot, event) });
    return takeNext(snapshot, scope);
  };
  return { receive, drop: pending.drop };
};

/**
 * Holds the effects of each transition until the store has answered (ADR 0040). Until then
 * the actor shows the committed snapshot, and its events wait. An answer at once is taken at
 * once. When a commit fails, is stale or late, the actor ends in error: the store has the truth.
 * The first snapshot is not committed here: commit it before the actor is created.
 */
export const durable = <Machine extends AnyStateMachine>(
  machine: Machine,
  port: CommitPort<Machine>,
): Machine => {
  const receiver = createReceiver(machine, port);
  const transition: Receive = (snapshot, event, scope) => {
    if (event.type === 'xstate.stop') {
      receiver.drop(scope);
      return machine.transition(snapshot, event, scope);
    }
    try {
      return receiver.receive(snapshot, event, scope);
    } catch (error) {
      receiver.drop(scope);
      stopChildren(scope, snapshot);
      throw error;
    }
  };
  // XState starts no child that has ended; the actor would wait for its end for ever.
  const start = (snapshot: AnyMachineSnapshot): void => {
    for (const child of childrenOf(snapshot)) child.start();
  };
  return Object.create(machine, { transition: { value: transition }, start: { value: start } });
};
