import type {
  AnyActorRef,
  AnyActorScope,
  AnyMachineSnapshot,
  AnyStateMachine,
  EventObject,
} from 'xstate';

export const childrenOf = (snapshot: AnyMachineSnapshot): readonly AnyActorRef[] =>
  Object.values(snapshot.children);

export const stopChildren = (scope: AnyActorScope, snapshot: AnyMachineSnapshot): void => {
  for (const child of childrenOf(snapshot)) scope.stopChild(child);
};

/** Stops the children of an actor that ends in error. XState lets them run. */
export const endsWithChildren = <Machine extends AnyStateMachine>(machine: Machine): Machine =>
  Object.create(machine, {
    transition: {
      value: (
        snapshot: AnyMachineSnapshot,
        event: EventObject,
        scope: AnyActorScope,
      ): AnyMachineSnapshot => {
        try {
          return machine.transition(snapshot, event, scope);
        } catch (error) {
          stopChildren(scope, snapshot);
          throw error;
        }
      },
    },
  });
