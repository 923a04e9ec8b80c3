import type { TestProject } from 'vitest/node';
import { startBdHost } from './fake-bd/host.mjs';

declare module 'vitest' {
  interface ProvidedContext {
    /** The port that fake bds ask. */
    readonly bdHost: number;
  }
}

export const setup = async (project: TestProject): Promise<() => void> => {
  const { port, close } = await startBdHost();
  project.provide('bdHost', port);
  return close;
};
