import type { AnyActorRef, AnyActorScope, AnyMachineSnapshot, EventObject } from 'xstate';
import { type CommitAnswer, StoreError } from '../store/port.ts';
import { type CommitDeadline, lateCommit, staleCommit } from './commit-answer.ts';
import { stopChildren } from './end-children.ts';
import type { HeldEffects } from './held-effects.ts';
import type { EventRequest } from './requests.ts';

/** An event that waits for its turn. */
export interface QueuedEvent {
  readonly event: EventObject;
  /** The child that the event tells the end of. */
  readonly child: AnyActorRef | undefined;
  readonly request: EventRequest | undefined;
}

/** A transition that is computed and not shown. */
export interface HeldTransition extends Pick<QueuedEvent, 'request'> {
  readonly next: AnyMachineSnapshot;
  readonly effects: HeldEffects;
}

/** Sent by an actor to itself. `cause` is the event of the transition, for the inspector. */
export interface TransitionAnswered extends EventObject {
  readonly type: typeof answeredType;
  readonly held: HeldTransition;
  readonly cause: EventObject;
  readonly error: unknown;
}

export const answeredType = 'durable.answered';
/** Sent by an actor to itself while events wait for their turn. */
export const nextTurnType = 'durable.next';

export const isAnswered = (event: EventObject): event is TransitionAnswered =>
  event.type === answeredType;

/**
 * The transition of each actor that waits for the store, and the events behind it. An actor at rest has
 * none.
 */
export interface HeldTransitions {
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

export const createHeldTransitions = ({ deadlineMs, later }: CommitDeadline): HeldTransitions => {
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
