/** Numbers from 0 to below 1 that are the same for the same seed. */
export const randomFrom = (start: number): (() => number) => {
  let state = start;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
};

/** The seed of this run; AGENT_TEST_SEED repeats it. */
export const seed = Number(process.env['AGENT_TEST_SEED'] ?? Date.now() % 1_000_000);
