import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import type { OpenWorkspace, SavedWork, TakenWork } from '../../../src/actors/workspace/port.ts';
import type { Merged } from '../../../src/machines/merge-queue/merge-queue-context.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { type Recorded, readRecording, recorder } from './recording.ts';

/** What a call gave, or the message of its error. */
export type Answer<Value> = { readonly value: Value } | { readonly error: string };

export interface DrivenWorkspace {
  open(attempt: number, after?: readonly string[]): Promise<Answer<OpenWorkspace>>;
  diff(attempt: number): Promise<Answer<{ readonly patch: string } | null>>;
  save(attempt: number): Promise<Answer<SavedWork | null>>;
  keep(attempt: number, step: string): Promise<Answer<void>>;
  take(attempt: number): Promise<Answer<TakenWork>>;
  merge(attempt: number, mode: 'ff' | 'squash'): Promise<Answer<Merged>>;
}

export interface WorkspaceDriver {
  /** The workspace of a project; `state` is the folder of its worktrees. */
  of(
    projectRoot: string,
    state: string,
    repository?: { readonly address: string; readonly server: string },
  ): DrivenWorkspace;
  /** Ends the process. @returns what it and its children did */
  end(): Promise<readonly Recorded[]>;
}

export const taskId = 'bd-a1';
/**
 * What does not answer until then hangs: a pipe that somebody opened, a remote that somebody asked.
 */
const answerMs = 30_000;
const driver = join(import.meta.dirname, 'workspace-driver.mjs');

/** Workspaces in a process of their own, recorded. */
export const driveWorkspaces = (): WorkspaceDriver => {
  const [home, logs] = [temporaryFolder(), temporaryFolder()];
  const log = join(logs, 'recording');
  const [program = '', ...args] = [...recorder(log), process.execPath, driver];
  const env = { PATH: '/usr/bin:/bin', HOME: home };
  const child = spawn(program, args, {
    cwd: '/',
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  });
  onTestFinished(() => {
    try {
      process.kill(-(child.pid ?? 0), 'SIGKILL');
    } catch {}
  });
  const ended = once(child, 'close');
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ask = async <Value>(call: string, order: object): Promise<Answer<Value>> => {
    child.stdin.write(`${JSON.stringify({ call, ...order })}\n`);
    const value = await Promise.race([
      lines.next().then((line) => line.value),
      sleep(answerMs, null, { ref: false }),
    ]);
    if (typeof value !== 'string') throw new Error(`the workspace did not answer ${call}`);
    return JSON.parse(value);
  };
  return {
    of: (projectRoot, folder, repository) => {
      const order = (attempt: number) => ({
        ...{ projectRoot, folder, repository },
        attempt: { taskId, attempt, role: 'engineer', options: {} },
      });
      return {
        open: (attempt, after = []) => ask('open', { ...order(attempt), after }),
        diff: (attempt) => ask('diff', order(attempt)),
        save: (attempt) => ask('save', order(attempt)),
        keep: (attempt, step) => ask('keep', { ...order(attempt), step }),
        take: (attempt) => ask('take', order(attempt)),
        merge: (attempt, mode) => ask('merge', { ...order(attempt), mode }),
      };
    },
    end: async () => {
      child.stdin.end();
      await ended;
      return readRecording(log);
    },
  };
};
