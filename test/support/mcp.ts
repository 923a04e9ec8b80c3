import { fork } from 'node:child_process';
import { join } from 'node:path';
import { expect, onTestFinished, vi } from 'vitest';
import type { McpServer, StdioLaunch } from '../../src/actors/mcp/port.ts';
import type { Running } from './running.ts';
import { temporaryFolder } from './temporary.ts';

const repository = join(import.meta.dirname, '..', '..');
const notesProgram = join(import.meta.dirname, 'mcp', 'notes-server.mjs');

/** A server that is a program of ours: by default the notes of the official SDK. */
export const stdioServer = (
  name: string,
  args: readonly string[] = [notesProgram, 'stdio'],
  place: Partial<StdioLaunch> = {},
  more: Partial<McpServer> = {},
): McpServer => ({
  name,
  place: {
    kind: 'stdio',
    argv: [process.execPath, ...args],
    env: {},
    sandboxed: true,
    network: false,
    mayWrite: false,
    readPaths: [repository],
    ...place,
  },
  tools: null,
  startMs: 20_000,
  callMs: 10_000,
  ...more,
});

export const notes = (variant = 'plain'): readonly string[] => [notesProgram, 'stdio', variant];

/** A program that serves over HTTP; `told` gets what it sends us, its port first. */
export const startMcpServer = async (program: string, args: readonly string[]) => {
  const child = fork(program, args, {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    cwd: temporaryFolder(),
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const told: { readonly port?: number; readonly closed?: string }[] = [];
  child.on('message', (message: object) => void told.push(message));
  await vi.waitFor(() => expect(told).not.toEqual([]), 10_000);
  return { url: `http://127.0.0.1:${told[0]?.port}/mcp`, told };
};

/** Frames of a task: their types and data, oldest first. */
export const framesOf = async ({ store }: Running, taskId: string) =>
  (await store.read({ taskId, after: 0, limit: 1_000 })).map(({ type, data }) => ({
    type,
    data: JSON.parse(data) as Record<string, unknown>,
  }));

/** What each tool call of a task gave, in order. */
export const resultsOf = async (running: Running, taskId: string) =>
  (await framesOf(running, taskId)).flatMap(({ type, data }) =>
    type === 'tool_end'
      ? [{ tool: data['tool'], ok: data['ok'], output: String(data['output']) }]
      : [],
  );
