import { fromPromise } from 'xstate';

/** Declares an actor that `src/actors` provides. Unprovided, it rejects with its name. */
export const declareActor = <Output, Input>(name: string) =>
  fromPromise<Output, Input>(() => Promise.reject(new Error(`actor "${name}" was not provided`)));
