import type { AnyActorRef, AnyActorScope, AnyMachineSnapshot, EventObject } from 'xstate';
import { type CommitAnswer, StoreError } from '../store/port.ts';
import { type CommitDeadline, lateCommit, staleCommit } from './commit-answer.ts';
import { stopChildren } from './end-children.ts';
import type { HeldEffects } from './held-effects.ts';
import type { EventRequest } from './requests.ts';

/** An event at its turn. */
export interface Turn {
  readonly event: EventObject;
  /** The child that the event tells the end of. */
  readonly child: AnyActorRef | undefined;
  readonly request: EventRequest | undefined;
}

/** A transition that is computed and not shown. */
export interface PendingStep extends Pick<Turn, 'request'> {
  readonly next: AnyMachineSnapshot;
  readonly effects: HeldEffects;
}

/** Sent by an actor to itself. `cause` is the event of the step, for the inspector. */
export interface StepAnswered extends EventObject {
  readonly type: typeof answeredType;
  readonly step: PendingStep;
  readonly cause: EventObject;
  readonly error: unknown;
}

export const answeredType = 'durable.answered';
/** Sent by an actor to itself while events wait for their turn. */
export const nextTurnType = 'durable.next';

export const isAnswered = (event: EventObject): event is StepAnswered =>
  event.type === answeredType;

/**
 * The step of each actor that waits for the store, and the events behind it. An actor at rest has
 * none.
 */
export interface PendingSteps {
  has(actor: AnyActorRef): boolean;
  isPending(actor: AnyActorRef, step: PendingStep): boolean;
  add(
    answer: Promise<CommitAnswer>,
    step: PendingStep,
    cause: EventObject,
    scope: AnyActorScope,
  ): void;
  wait(actor: AnyActorRef, turn: Turn): void;
  /** The next event, unless a step is pending. */
  next(actor: AnyActorRef): Turn | undefined;
  /** Ends the step. Events of timers that it cancels go; the next event gets its turn. */
  end(step: PendingStep, scope: AnyActorScope): void;
  /** Drops all of an actor that ends. Children of its step were never started. */
  drop(scope: AnyActorScope): void;
}

interface Mailbox {
  pending: PendingStep | null;
  turns: Turn[];
}

const turnsAtMost = 1_000;

export const createPendingSteps = ({ deadlineMs, later }: CommitDeadline): PendingSteps => {
  const mailboxes = new WeakMap<AnyActorRef, Mailbox>();
  return {
    has: (actor) => mailboxes.has(actor),
    isPending: (actor, step) => mailboxes.get(actor)?.pending === step,
    add: (answer, step, cause, { self }) => {
      const mailbox = mailboxes.get(self) ?? { pending: null, turns: [] };
      mailbox.pending = step;
      mailboxes.set(self, mailbox);
      const settle = (error?: unknown): void => {
        cancel();
        if (mailbox.pending === step) self.send({ type: answeredType, step, cause, error });
      };
      const cancel = later(() => settle(lateCommit()), deadlineMs);
      answer.then(
        (word) => settle(word === 'ok' ? undefined : staleCommit()),
        (error: unknown) => settle(error ?? new StoreError('the commit failed')),
      );
    },
    wait: (actor, turn) => {
      const turns = mailboxes.get(actor)?.turns ?? [];
      if (turns.length >= turnsAtMost)
        throw new StoreError('too many events wait for the store; ask again');
      turns.push(turn);
    },
    next: (actor) => {
      const mailbox = mailboxes.get(actor);
      return mailbox?.pending === null ? mailbox.turns.shift() : undefined;
    },
    end: ({ effects }, { self, defer }) => {
      const mailbox = mailboxes.get(self);
      if (mailbox === undefined) return;
      mailbox.pending = null;
      mailbox.turns = mailbox.turns.filter(({ event }) => !effects.cancels(event.type));
      if (mailbox.turns.length === 0) mailboxes.delete(self);
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
