/** @throws an error that names the work when it takes longer than `ms` */
export const withTimeout = async (
  work: Promise<unknown>,
  ms: number,
  what: string,
): Promise<void> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not end within ${ms / 1000} s`)), ms);
  });
  await Promise.race([work, late]).finally(() => clearTimeout(timer));
};
