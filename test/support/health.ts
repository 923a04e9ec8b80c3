/** How long each answer of /health took, in ms, asked again and again while something else is done. */
export const whileHealthIsAsked = async (base: string, work: () => Promise<unknown>): Promise<readonly number[]> => {
  const took: number[] = [];
  // The first answer of a process is that of code that was never run.
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

/** What that part of them stayed below. */
export const slowestOf = (took: readonly number[], part: number): number =>
  took.toSorted((a, b) => a - b)[Math.ceil(took.length * part) - 1] ?? Number.POSITIVE_INFINITY;
