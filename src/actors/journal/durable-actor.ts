import type { AnyActorRef, AnyMachineSnapshot, AnyStateMachine, EventObject, SnapshotFrom } from 'xstate';
import { isServiceError } from '../../machines/errors.ts';

/** Told of every transition before any of its effects starts. Must make it durable, or throw. */
export interface Recorder<Machine extends AnyStateMachine> {
  readonly now: () => number;
  readonly commit: (next: SnapshotFrom<Machine>, event: EventObject, previous: SnapshotFrom<Machine> | null) => void;
}

interface ErrorData {
  readonly name: string;
  readonly message: string;
  /** Of our own errors, by which a chart tells what may pass from what may not. */
  readonly code?: string;
  readonly facts?: unknown;
}

const asData = (error: unknown): ErrorData => {
  if (isServiceError(error)) return { name: error.name, message: error.message, code: error.code, facts: error.facts };
  return error instanceof Error
    ? { name: error.name, message: error.message }
    : { name: 'Error', message: String(error) };
};

/** Puts the time on the event and turns a thrown error into data, so that what the chart sees is what the journal holds. */
const stamp = (event: EventObject, now: () => number): EventObject => {
  const stamped: EventObject & { readonly error?: unknown } = 'at' in event ? event : { ...event, at: now() };
  return 'error' in stamped ? ({ ...stamped, error: asData(stamped.error) } as EventObject) : stamped;
};

const changed = (previous: { value: unknown; context: unknown }, next: { value: unknown; context: unknown }): boolean =>
  previous.context !== next.context || JSON.stringify(previous.value) !== JSON.stringify(next.value);

/** Of the scope that XState gives to a logic, what is needed of it here. */
interface Scope {
  readonly stopChild: (child: AnyActorRef) => void;
}

/** XState lets the children of an actor that ended in error go on. Here they are stopped: nobody would hear of them any more. */
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
 * Commit, then show, then act (DESIGN 3.2, ADR 0002): the same logic, whose transitions are committed before XState
 * starts what they cause. XState defers the start and stop of children until `transition` has returned, and drops them
 * when it throws; then the actor ends in error, and what is true is what was committed last.
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
