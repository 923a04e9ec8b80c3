import { type AnyActorRef, createActor, fromTransition, type InspectionEvent } from 'xstate';

/** Actors that share one XState system and nothing else. */
export interface Family {
  readonly parent: AnyActorRef;
  /** Ends a child; XState lets only its parent do that. */
  stop(child: AnyActorRef): void;
}

type Told = { readonly type: 'stop'; readonly child: AnyActorRef };

/**
 * A parent that knows no child by itself: who spawns children keeps them in its snapshot, which makes many of them slow
 * (facts/runtime 2), and an actor without a parent brings a system of its own, which doubles its memory (bench/memory).
 * What becomes of a child is told to its own subscribers.
 */
export const createFamily = (inspected: { readonly inspect?: (event: InspectionEvent) => void }): Family => {
  const logic = fromTransition((state: null, event: Told, { stopChild }) => {
    if (event.type === 'stop') stopChild(event.child);
    return state;
  }, null);
  const parent = createActor(logic, { id: 'tasks', ...inspected }).start();
  return { parent, stop: (child) => parent.send({ type: 'stop', child }) };
};
