import type { AnyActorRef, AnyMachineSnapshot, AnyStateMachine, EventObject, SnapshotFrom } from 'xstate';
import { isServiceError } from '../../machines/errors.ts';

/**
 * `commit` runs for every transition before its effects. It must make the transition durable, or
 * throw.
 */
export interface Recorder<Machine extends AnyStateMachine> {
  readonly now: () => number;
  readonly commit: (next: SnapshotFrom<Machine>, event: EventObject, previous: SnapshotFrom<Machine> | null) => void;
}

interface ErrorData {
  readonly name: string;
  readonly message: string;
  /** Only our own errors have one; the machine reads it. */
  readonly code?: string;
  readonly facts?: unknown;
}

const asData = (error: unknown): ErrorData => {
  if (isServiceError(error)) return { name: error.name, message: error.message, code: error.code, facts: error.facts };
  return error instanceof Error
    ? { name: error.name, message: error.message }
    : { name: 'Error', message: String(error) };
};

/** Adds the time and turns an error into data, so that the machine sees what the journal holds. */
const stamp = (event: EventObject, now: () => number): EventObject => {
  const stamped: EventObject & { readonly error?: unknown } = 'at' in event ? event : { ...event, at: now() };
  return 'error' in stamped ? ({ ...stamped, error: asData(stamped.error) } as EventObject) : stamped;
};

const changed = (previous: { value: unknown; context: unknown }, next: { value: unknown; context: unknown }): boolean =>
  previous.context !== next.context || JSON.stringify(previous.value) !== JSON.stringify(next.value);

interface Scope {
  readonly stopChild: (child: AnyActorRef) => void;
}

/** Stops the children of an actor that ends in error. XState lets them run. */
export const endsWithChildren = <Machine extends AnyStateMachine>(machine: Machine): Machine => {
  const { transition } = machine;
  return Object.create(machine, {
    transition: {
      value(this: Machine, snapshot: SnapshotFrom<Machine>, event: EventObject, scope: Scope): SnapshotFrom<Machine> {
        try {
          return transition.call(this, snapshot as never, event as never, scope as never) as never;
        } catch (error) {
          for (const child of Object.values<AnyActorRef>((snapshot as AnyMachineSnapshot).children))
            scope.stopChild(child);
          throw error;
        }
      },
    },
  });
};

/**
 * Commits each transition before XState starts its effects (DESIGN 3.2, ADR 0002). XState starts
 * and stops children after `transition` has returned. When it throws, the actor ends in error and
 * the last commit is the truth.
 */
export const durable = <Machine extends AnyStateMachine>(machine: Machine, recorder: Recorder<Machine>): Machine => {
  const { transition, getInitialSnapshot } = machine;
  const logic: Machine = Object.create(machine, {
    transition: {
      value(this: Machine, snapshot: SnapshotFrom<Machine>, event: EventObject, scope: Scope): SnapshotFrom<Machine> {
        if (event.type === 'xstate.stop')
          return transition.call(this, snapshot as never, event as never, scope as never) as never;
        const stamped = stamp(event, recorder.now);
        const next = transition.call(this, snapshot as never, stamped as never, scope as never) as typeof snapshot;
        if (changed(snapshot, next)) recorder.commit(next, stamped, snapshot);
        return next;
      },
    },
    getInitialSnapshot: {
      value(this: Machine, scope: never, input: never): SnapshotFrom<Machine> {
        const first = getInitialSnapshot.call(this, scope, input) as SnapshotFrom<Machine>;
        recorder.commit(first, { type: 'xstate.init', input, at: recorder.now() } as EventObject, null);
        return first;
      },
    },
  });
  return endsWithChildren(logic);
};
