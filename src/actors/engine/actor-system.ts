import { type AnyActorRef, createActor, fromTransition, type InspectionEvent } from 'xstate';

export interface TaskRoot {
  readonly parent: AnyActorRef;
  /** Stops a child; XState lets only the parent do that. */
  stop(child: AnyActorRef): void;
}

type StopChild = { readonly type: 'stop'; readonly child: AnyActorRef };

/**
 * Parent of all task actors. They are not in its snapshot: XState copies all children when one is
 * spawned or stopped. An actor without a parent has a system of its own, which doubles its memory
 * (bench/memory).
 */
export const createTaskRoot = (inspected: { readonly inspect?: (event: InspectionEvent) => void }): TaskRoot => {
  const logic = fromTransition((state: null, event: StopChild, { stopChild }) => {
    if (event.type === 'stop') stopChild(event.child);
    return state;
  }, null);
  const parent = createActor(logic, { id: 'tasks', ...inspected }).start();
  return { parent, stop: (child) => parent.send({ type: 'stop', child }) };
};
