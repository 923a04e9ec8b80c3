import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { stopServerIn } from './postgres-programs.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder of the one PostgreSQL of a run; the first test that needs it starts it there. */
    readonly postgresFolder: string;
  }
}

export const setup = (project: TestProject): (() => void) => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'agent-pg-')));
  project.provide('postgresFolder', folder);
  return () => {
    stopServerIn(folder);
    rmSync(folder, { recursive: true, force: true });
  };
};
