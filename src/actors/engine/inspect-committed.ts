import type { AnyActorRef, InspectionEvent } from 'xstate';
import { isAnswered, nextTurnType } from '../journal/pending-steps.ts';

type Inspect = (event: InspectionEvent) => void;

/**
 * Shows an inspector only what is committed: a child when it starts, a snapshot when it changes,
 * with the event that caused it instead of the driver's own events (ADR 0040).
 */
export const inspectCommitted = (inspect: Inspect): Inspect => {
  const unborn = new WeakMap<AnyActorRef, InspectionEvent>();
  const shown = new WeakMap<AnyActorRef, unknown>();

  const introduce = (actor: AnyActorRef): void => {
    const created = unborn.get(actor);
    unborn.delete(actor);
    if (created !== undefined) inspect(created);
  };
  return (event) => {
    const actor: AnyActorRef = event.actorRef as AnyActorRef;
    if (event.type === '@xstate.actor') unborn.set(actor, event);
    else if (event.type === '@xstate.event') {
      introduce(actor);
      if (!isAnswered(event.event) && event.event.type !== nextTurnType) inspect(event);
    } else if (event.type === '@xstate.snapshot' && shown.get(actor) !== event.snapshot) {
      shown.set(actor, event.snapshot);
      inspect(isAnswered(event.event) ? { ...event, event: event.event.cause } : event);
    }
  };
};
