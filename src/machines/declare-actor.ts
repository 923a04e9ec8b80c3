import { fromPromise } from 'xstate';

/**
 * A named place in a chart for work that `src/actors` provides: the machine says what is called and when,
 * never how. A slot that nobody filled rejects with its name.
 */
export const slot = <Output, Input>(name: string) =>
  fromPromise<Output, Input>(() => Promise.reject(new Error(`actor "${name}" was not provided`)));
