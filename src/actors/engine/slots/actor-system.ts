import { type AnyActorRef, createActor, fromTransition, type InspectionEvent } from 'xstate';

/** The root of the one actor system. The supervisor and the tasks are its children. */
export interface ActorRoot {
  readonly parent: AnyActorRef;
  /** Stops a child; XState lets only the parent do that. */
  stop(child: AnyActorRef): void;
}

type StopChild = { readonly type: 'stop'; readonly child: AnyActorRef };

/**
 * Its children are not in its snapshot: XState copies all children when one is spawned or stopped.
 * An actor without a parent has a system of its own, which doubles its memory (bench/memory).
 */
export const createActorRoot = (
  inspect: ((event: InspectionEvent) => void) | undefined,
): ActorRoot => {
  const logic = fromTransition((state: null, event: StopChild, { stopChild }) => {
    if (event.type === 'stop') stopChild(event.child);
    return state;
  }, null);
  const parent = createActor(logic, {
    id: 'server',
    inspect,
  }).start();
  return { parent, stop: (child) => parent.send({ type: 'stop', child }) };
};
