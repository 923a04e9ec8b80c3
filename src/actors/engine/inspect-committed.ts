import type { AnyActorRef, InspectionEvent } from 'xstate';
import { isAnswered, nextTurnType } from '../journal/held-transitions.ts';

type Inspect = (event: InspectionEvent) => void;

/**
 * Shows an inspector only what is committed: a child when it starts, a snapshot when it changes,
 * after the microsteps that led to it, with the event that caused it instead of the driver's own
 * events (ADR 0040). Actions are effects, so they come after the commit.
 */
export const inspectCommitted = (inspect: Inspect): Inspect => {
  const unborn = new WeakMap<AnyActorRef, InspectionEvent>();
  const shown = new WeakMap<AnyActorRef, unknown>();
  /** Held until their transition is committed. */
  const microsteps = new WeakMap<AnyActorRef, InspectionEvent[]>();

  const introduce = (actor: AnyActorRef): void => {
    const created = unborn.get(actor);
    unborn.delete(actor);
    if (created !== undefined) inspect(created);
  };
  return (event) => {
    const actor: AnyActorRef = event.actorRef as AnyActorRef;
    if (event.type === '@xstate.actor') unborn.set(actor, event);
    else if (event.type === '@xstate.action') inspect(event);
    else if (event.type === '@xstate.microstep') {
      // An event that changes nothing is a microstep, too; no snapshot follows it.
      if (event.snapshot !== shown.get(actor))
        microsteps.set(actor, [...(microsteps.get(actor) ?? []), event]);
    } else if (event.type === '@xstate.event') {
      introduce(actor);
      if (!isAnswered(event.event) && event.event.type !== nextTurnType) inspect(event);
    } else if (event.type === '@xstate.snapshot' && shown.get(actor) !== event.snapshot) {
      shown.set(actor, event.snapshot);
      for (const step of microsteps.get(actor) ?? []) inspect(step);
      microsteps.delete(actor);
      inspect(isAnswered(event.event) ? { ...event, event: event.event.cause } : event);
    }
  };
};
