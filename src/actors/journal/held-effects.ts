import type { AnyActorScope } from 'xstate';

/** The effects of one transition, held until its commit is answered. */
export interface HeldEffects {
  /** The scope for `transition`: what it would do is held, in order. */
  readonly scope: AnyActorScope;
  /** True for the event of a timer that this transition cancels. */
  cancels(eventType: string): boolean;
  /** Gives the effects to XState, which runs them when `transition` has returned. */
  release(): void;
}

export const holdEffects = (scope: AnyActorScope): HeldEffects => {
  const held: (() => void)[] = [];
  let cancelled: Set<unknown> | null = null;
  let released = false;
  return {
    scope: {
      ...scope,
      // A built-in action defers what it does when it is executed, so after the release.
      defer: (run) => {
        if (released) scope.defer(run);
        else held.push(() => scope.defer(run));
      },
      actionExecutor: (action) => {
        if (action.type === 'xstate.cancel') {
          cancelled ??= new Set();
          cancelled.add((action.params as { readonly sendId?: unknown }).sendId);
        }
        held.push(() => scope.actionExecutor(action));
      },
    },
    cancels: (eventType) => cancelled?.has(eventType) === true,
    release: () => {
      released = true;
      for (const run of held) run();
    },
  };
};
