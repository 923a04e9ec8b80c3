import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { openProject } from '../../support/cli.ts';

type Project = ReturnType<typeof openProject>;

export interface View {
  readonly task_id: string;
  readonly status: string;
  readonly phase: string;
  readonly attempt: number;
  readonly error?: { readonly code: string; readonly message: string };
}
export interface Answer {
  readonly result?: View;
  readonly error?: {
    readonly code: number;
    readonly message: string;
    readonly data: { readonly code: string };
  };
}

/** Waits for a server to say where it is, then speaks with it. */
export const clientOf = async ({ serverFile, stateDir }: Project, pid?: number) => {
  while (serverFile() === null || (pid !== undefined && serverFile().pid !== pid)) await delay(20);
  const { url } = serverFile() as { url: string };
  const headers = {
    authorization: `Bearer ${readFileSync(join(stateDir, 'token'), 'utf8').trim()}`,
    'content-type': 'application/json',
  };
  const call = async (method: string, params: object, id = method): Promise<Answer> => {
    const body = JSON.stringify({ jsonrpc: '2.0', id, method, params });
    return (
      await fetch(`${url}/a2a/execute`, { method: 'POST', headers, body })
    ).json() as Promise<Answer>;
  };
  const health = async () =>
    (await (await fetch(`${url}/health`)).json()) as {
      status: string;
      checks: Record<'store' | 'tracker', { status: string; detail: string }>;
    };
  const viewOf = async (task_id: string): Promise<View> => {
    const { result, error } = await call('status', { task_id });
    if (result === undefined) throw new Error(error?.message);
    return result;
  };
  return {
    url,
    headers,
    call,
    health,
    viewOf,
    /** Waits until a task is over; the test's own time limit is the deadline. */
    ended: async (taskId: string): Promise<string> => {
      for (;;) {
        const { status } = await viewOf(taskId);
        if (status === 'complete' || status === 'failed' || status === 'cancelled') return status;
        await delay(50);
      }
    },
  };
};
