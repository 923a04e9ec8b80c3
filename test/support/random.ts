/** Numbers from 0 to below 1 that are the same for the same seed. */
export const randomFrom = (start: number): (() => number) => {
  let state = start;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
};

/** Of this run; a run is made again with AGENT_TEST_SEED. */
export const seed = Number(process.env['AGENT_TEST_SEED'] ?? Date.now() % 1_000_000);
