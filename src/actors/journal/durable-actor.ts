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
  createPendingSteps,
  isAnswered,
  nextTurnType,
  type PendingStep,
  type PendingSteps,
  type StepAnswered,
  type Turn,
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

/** Gives a step to the store; it is pending until a late answer has come. */
const createStepCommit =
  <Machine extends AnyStateMachine>(
    port: CommitPort<Machine>,
    pending: Pick<PendingSteps, 'add'>,
  ) =>
  (
    step: PendingStep,
    cause: EventObject,
    previous: AnyMachineSnapshot,
    scope: AnyActorScope,
  ): CommitAnswer | Promise<CommitAnswer> => {
    try {
      const requestId = step.request?.id ?? null;
      const answer = port.commit({
        next: step.next as never,
        cause,
        previous: previous as never,
        requestId,
      });
      if (answer === 'stale') throw staleCommit();
      if (answer !== 'ok') pending.add(answer, step, cause, scope);
      return answer;
    } catch (error) {
      stopChildren(scope, step.next);
      throw error;
    }
  };

const createTurns = <Machine extends AnyStateMachine>(
  machine: Machine,
  port: CommitPort<Machine>,
) => {
  const pending = createPendingSteps(port);

  const publish = (step: PendingStep, scope: AnyActorScope): AnyMachineSnapshot => {
    step.effects.release();
    if (step.request !== undefined) scope.defer(step.request.published);
    pending.end(step, scope);
    return step.next;
  };

  const commit = createStepCommit(port, pending);

  const take = (
    { event, child, request }: Turn,
    snapshot: AnyMachineSnapshot,
    scope: AnyActorScope,
  ) => {
    const effects = holdEffects(scope);
    // The end of a child that was stopped meanwhile counts no more; XState alone would not deliver
    // it.
    const isOver = child !== undefined && childOf(snapshot, event) !== child;
    if (isOver || request?.refused(snapshot) === true)
      return publish({ next: snapshot, effects, request: undefined }, scope);
    const step: PendingStep = {
      next: machine.transition(snapshot, event, effects.scope),
      effects,
      request,
    };
    const isOk = !changed(snapshot, step.next) || commit(step, event, snapshot, scope) === 'ok';
    return isOk ? publish(step, scope) : snapshot;
  };

  const takeNext = (snapshot: AnyMachineSnapshot, scope: AnyActorScope): AnyMachineSnapshot => {
    const turn = pending.next(scope.self);
    return turn === undefined ? snapshot : take(turn, snapshot, scope);
  };

  const receiveAnswer = (
    snapshot: AnyMachineSnapshot,
    { step, error }: StepAnswered,
    scope: AnyActorScope,
  ) => {
    if (!pending.isPending(scope.self, step)) return snapshot;
    if (error !== undefined) throw error;
    return publish(step, scope);
  };

  const receive: Receive = (snapshot, event, scope) => {
    if (isAnswered(event)) return receiveAnswer(snapshot, event, scope);
    if (event.type === nextTurnType) return takeNext(snapshot, scope);
    const turn = { event: stampEvent(event, port.now), request: takeRequest(event) };
    if (!pending.has(scope.self)) return take({ ...turn, child: undefined }, snapshot, scope);
    pending.wait(scope.self, { ...turn, child: childOf(snapshot, event) });
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
  const turns = createTurns(machine, port);
  const transition: Receive = (snapshot, event, scope) => {
    if (event.type === 'xstate.stop') {
      turns.drop(scope);
      return machine.transition(snapshot, event, scope);
    }
    try {
      return turns.receive(snapshot, event, scope);
    } catch (error) {
      turns.drop(scope);
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
