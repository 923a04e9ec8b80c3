import type { Io } from './io.ts';

export interface PagerChoice {
  readonly env: NodeJS.ProcessEnv;
  readonly pager: boolean;
  readonly json: boolean;
}

/** `PAGER`, else less; null where the user wants none. */
const programOf = ({ PAGER: given, TERM }: NodeJS.ProcessEnv): string | null => {
  const program = given?.trim() ?? 'less';
  return program === '' || program === 'cat' || TERM === 'dumb' ? null : program;
};

/**
 * Runs with an output that a pager shows as soon as it is longer than the screen. @returns what
 * `run` returns, or 0 when the reader leaves the pager before
 */
export const inPager = async (
  io: Io,
  { env, pager, json }: PagerChoice,
  run: (io: Io) => Promise<number>,
): Promise<number> => {
  const program = io.pages && pager && !json ? programOf(env) : null;
  if (program === null) return run(io);
  const { createPagedIo } = await import('./pager.ts');
  const paged = createPagedIo(io, program, env);
  try {
    return await Promise.race([run(paged.io), paged.left]);
  } finally {
    await paged.end();
  }
};
