/** The duration of each answer of /health in ms, measured repeatedly during other work. */
export const whileHealthIsAsked = async (
  base: string,
  work: () => Promise<unknown>,
): Promise<readonly number[]> => {
  const took: number[] = [];
  // The first answer of a process runs code for the first time.
  await fetch(`${base}/health`);
  let isOver = false;
  const asking = async (): Promise<void> => {
    while (!isOver) {
      const began = performance.now();
      const { ok } = await fetch(`${base}/health`);
      if (!ok) throw new Error('the server is not healthy');
      took.push(performance.now() - began);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  await Promise.all([asking(), work().finally(() => (isOver = true))]);
  return took;
};

/** The bound of this share of them. */
export const slowestOf = (took: readonly number[], part: number): number =>
  took.toSorted((a, b) => a - b)[Math.ceil(took.length * part) - 1] ?? Number.POSITIVE_INFINITY;
