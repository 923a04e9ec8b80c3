import type { AnyActorRef, InspectionEvent } from 'xstate';
import { isAnswered, nextTurnType } from '../../journal/durable-actor.ts';

type Inspect = (event: InspectionEvent) => void;
type Microstep = Extract<InspectionEvent, { type: '@xstate.microstep' }>;
type ShownSnapshot = Extract<InspectionEvent, { type: '@xstate.snapshot' }>;

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
  const hold = (actor: AnyActorRef, step: Microstep): void => {
    // An event that changes nothing is a microstep, too; no snapshot follows it.
    if (step.snapshot === shown.get(actor)) return;
    microsteps.set(actor, [...(microsteps.get(actor) ?? []), step]);
  };
  const show = (actor: AnyActorRef, change: ShownSnapshot): void => {
    if (shown.get(actor) === change.snapshot) return;
    shown.set(actor, change.snapshot);
    for (const step of microsteps.get(actor) ?? []) inspect(step);
    microsteps.delete(actor);
    inspect(isAnswered(change.event) ? { ...change, event: change.event.cause } : change);
  };
  return (event) => {
    const actor: AnyActorRef = event.actorRef as AnyActorRef;
    if (event.type === '@xstate.actor') unborn.set(actor, event);
    if (event.type === '@xstate.action') inspect(event);
    if (event.type === '@xstate.microstep') hold(actor, event);
    if (event.type === '@xstate.snapshot') show(actor, event);
    if (event.type !== '@xstate.event') return;
    introduce(actor);
    if (!isAnswered(event.event) && event.event.type !== nextTurnType) inspect(event);
  };
};
