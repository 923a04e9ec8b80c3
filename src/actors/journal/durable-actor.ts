import type {
  AnyActorRef,
  AnyActorScope,
  AnyMachineSnapshot,
  AnyStateMachine,
  EventObject,
  SnapshotFrom,
} from 'xstate';
import { isServiceError } from '../../machines/errors.ts';
import { type CommitAnswer, StoreError } from '../store/port.ts';
import { type CommitDeadline, lateCommit, staleCommit } from './commit-answer.ts';
import { type EventRequest, takeRequest } from './requests.ts';

const childrenOf = (snapshot: AnyMachineSnapshot): readonly AnyActorRef[] =>
  Object.values(snapshot.children);

const stopChildren = (scope: AnyActorScope, snapshot: AnyMachineSnapshot): void => {
  for (const child of childrenOf(snapshot)) scope.stopChild(child);
};

/** Stops the children of an actor that ends in error. XState lets them run. */
export const endsWithChildren = <Machine extends AnyStateMachine>(machine: Machine): Machine =>
  Object.create(machine, {
    transition: {
      value: (
        snapshot: AnyMachineSnapshot,
        event: EventObject,
        scope: AnyActorScope,
      ): AnyMachineSnapshot => {
        try {
          return machine.transition(snapshot, event, scope);
        } catch (error) {
          stopChildren(scope, snapshot);
          throw error;
        }
      },
    },
  });

/** The effects of one transition, held until its commit is answered. */
interface HeldEffects {
  /** The scope for `transition`: what it would do is held, in order. */
  readonly scope: AnyActorScope;
  /** True for the event of a timer that this transition cancels. */
  cancels(eventType: string): boolean;
  /** Gives the effects to XState, which runs them when `transition` has returned. */
  release(): void;
}

const holdEffects = (scope: AnyActorScope): HeldEffects => {
  const held: (() => void)[] = [];
  let cancelled: Set<unknown> | null = null;
  let released = false;
  return {
    scope: {
      ...scope,
      // A built-in action defers what it does when it is executed, so after the release.
      defer: (run) => {
        if (released) scope.defer(run);
        else held.push(() => scope.defer(run));
      },
      actionExecutor: (action) => {
        if (action.type === 'xstate.cancel') {
          cancelled ??= new Set();
          cancelled.add((action.params as { readonly sendId?: unknown }).sendId);
        }
        held.push(() => scope.actionExecutor(action));
      },
    },
    cancels: (eventType) => cancelled?.has(eventType) === true,
    release: () => {
      released = true;
      for (const run of held) run();
    },
  };
};

/** An event that waits for its turn. */
interface QueuedEvent {
  readonly event: EventObject;
  /** The child that the event tells the end of. */
  readonly child: AnyActorRef | undefined;
  readonly request: EventRequest | undefined;
}

/** A transition that is computed and not shown. */
interface HeldTransition extends Pick<QueuedEvent, 'request'> {
  readonly next: AnyMachineSnapshot;
  readonly effects: HeldEffects;
}

/** Sent by an actor to itself. `cause` is the event of the transition, for the inspector. */
interface TransitionAnswered extends EventObject {
  readonly type: typeof answeredType;
  readonly held: HeldTransition;
  readonly cause: EventObject;
  readonly error: unknown;
}

const answeredType = 'durable.answered';
/** Sent by an actor to itself while events wait for their turn. */
export const nextTurnType = 'durable.next';

export const isAnswered = (event: EventObject): event is TransitionAnswered =>
  event.type === answeredType;

/**
 * The transition of each actor that waits for the store, and the events behind it. An actor at rest has
 * none.
 */
interface HeldTransitions {
  has(actor: AnyActorRef): boolean;
  isPending(actor: AnyActorRef, held: HeldTransition): boolean;
  add(
    answer: Promise<CommitAnswer>,
    held: HeldTransition,
    cause: EventObject,
    scope: AnyActorScope,
  ): void;
  wait(actor: AnyActorRef, queued: QueuedEvent): void;
  /** The next event, unless a transition is pending. */
  next(actor: AnyActorRef): QueuedEvent | undefined;
  /** Ends the transition. Events of timers that it cancels go; the next event gets its turn. */
  end(held: HeldTransition, scope: AnyActorScope): void;
  /** Drops all of an actor that ends. Children of its transition were never started. */
  drop(scope: AnyActorScope): void;
}

interface Mailbox {
  pending: HeldTransition | null;
  events: QueuedEvent[];
}

const eventsAtMost = 1_000;

const createHeldTransitions = ({ deadlineMs, later }: CommitDeadline): HeldTransitions => {
  const mailboxes = new WeakMap<AnyActorRef, Mailbox>();
  return {
    has: (actor) => mailboxes.has(actor),
    isPending: (actor, held) => mailboxes.get(actor)?.pending === held,
    add: (answer, held, cause, { self }) => {
      const mailbox = mailboxes.get(self) ?? { pending: null, events: [] };
      mailbox.pending = held;
      mailboxes.set(self, mailbox);
      const settle = (error?: unknown): void => {
        cancel();
        if (mailbox.pending === held) self.send({ type: answeredType, held, cause, error });
      };
      const cancel = later(() => settle(lateCommit()), deadlineMs);
      answer.then(
        (word) => settle(word === 'ok' ? undefined : staleCommit()),
        (error: unknown) => settle(error ?? new StoreError('the commit failed')),
      );
    },
    wait: (actor, queued) => {
      const events = mailboxes.get(actor)?.events ?? [];
      if (events.length >= eventsAtMost)
        throw new StoreError('too many events wait for the store; try again');
      events.push(queued);
    },
    next: (actor) => {
      const mailbox = mailboxes.get(actor);
      return mailbox?.pending === null ? mailbox.events.shift() : undefined;
    },
    end: ({ effects }, { self, defer }) => {
      const mailbox = mailboxes.get(self);
      if (mailbox === undefined) return;
      mailbox.pending = null;
      mailbox.events = mailbox.events.filter(({ event }) => !effects.cancels(event.type));
      if (mailbox.events.length === 0) mailboxes.delete(self);
      else defer(() => self.send({ type: nextTurnType }));
    },
    drop: (scope) => {
      const mailbox = mailboxes.get(scope.self);
      mailboxes.delete(scope.self);
      const pending = mailbox?.pending ?? null;
      if (mailbox === undefined || pending === null) return;
      mailbox.pending = null;
      stopChildren(scope, pending.next);
    },
  };
};

interface ErrorData {
  readonly name: string;
  readonly message: string;
  /** Only our own errors have one; the machine reads it. */
  readonly code?: string;
  readonly facts?: unknown;
}

const asData = (error: unknown): ErrorData => {
  if (isServiceError(error))
    return { name: error.name, message: error.message, code: error.code, facts: error.facts };
  return error instanceof Error
    ? { name: error.name, message: error.message }
    : { name: 'Error', message: String(error) };
};

/** Adds the time and turns an error into data, so that the machine sees what the journal holds. */
const stampEvent = (event: EventObject, now: () => number): EventObject => {
  const stamped: EventObject & { readonly error?: unknown } =
    'at' in event ? event : { ...event, at: now() };
  return 'error' in stamped
    ? ({ ...stamped, error: asData(stamped.error) } as EventObject)
    : stamped;
};

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
