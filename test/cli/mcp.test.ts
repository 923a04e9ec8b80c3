import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { expect, onTestFinished, test } from 'vitest';
import { bin, type openProject } from '../support/cli.ts';
import { openGitProject } from '../support/git-project.ts';

const open = (turns: readonly object[]) => openGitProject([{ turns }], { mode: 'worktree' });

/** The official client on the published program. */
const connect = async ({ root, env }: ReturnType<typeof openProject>) => {
  const client = new Client({ name: 'test', version: '1' });
  const given = Object.entries(env).flatMap(([key, value]) =>
    value === undefined ? [] : [[key, value] as const],
  );
  await client.connect(
    new StdioClientTransport({
      command: process.execPath,
      args: [bin('agent'), 'mcp'],
      cwd: root,
      env: Object.fromEntries(given),
      stderr: 'ignore',
    }),
  );
  onTestFinished(() => client.close());
  const call = (name: string, args: Record<string, unknown> = {}) =>
    client.callTool({ name, arguments: args });
  return { client, call };
};

const finish = { calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'b is new' } }] };
const write = { calls: [{ tool: 'write', arguments: { path: 'b.txt', content: 'new\n' } }] };

test('the official client creates, runs, waits for, reads and merges a task', {
  tags: ['slow'],
}, async () => {
  const project = open([write, finish]);
  const { client, call } = await connect(project);
  const progress: string[] = [];

  const created = await call('create_task', { description: 'Add b' });
  const { task_id } = created.structuredContent as { task_id: string };
  const ran = await call('run', { task_ids: [task_id], role: 'engineer' });
  const waited = await client.callTool(
    { name: 'wait_for_task', arguments: { task_id } },
    undefined,
    { onprogress: ({ message }) => progress.push(message ?? '') },
  );
  const diff = await call('diff', { task_id });
  const merged = await call('merge', { task_id });
  const { resources } = await client.listResources();
  const view = await client.readResource({ uri: `task://${task_id}` });
  const result = await client.readResource({ uri: `task://${task_id}/result` });
  const explained = await call('explain', { task_id });
  const listed = await call('list_tasks', { status: 'complete' });

  expect(ran.structuredContent).toMatchObject({ accepted: [{ task_id, role: 'engineer' }] });
  expect(waited.structuredContent).toMatchObject({ task_id, status: 'complete' });
  expect(progress).toContain('runs write');
  expect(diff.structuredContent).toMatchObject({ patch: expect.stringContaining('+new') });
  expect(merged.structuredContent).toMatchObject({ status: 'merged' });
  expect(readFileSync(join(project.root, 'b.txt'), 'utf8')).toBe('new\n');
  expect(resources.map(({ uri }) => uri)).toEqual([
    `task://${task_id}`,
    `task://${task_id}/result`,
  ]);
  expect(view.contents).toMatchObject([{ text: expect.stringMatching(/"status": ?"complete"/) }]);
  expect(result.contents).toMatchObject([{ text: expect.stringContaining('b is new') }]);
  expect(explained.structuredContent).toMatchObject({ task_id });
  expect(listed.structuredContent).toMatchObject({ tasks: [{ task_id }] });
});

test('a wait ends at a question, and the answer goes to the agent', {
  tags: ['slow'],
}, async () => {
  const ask = { calls: [{ tool: 'ask', arguments: { question: 'Which port?' } }] };
  const { call } = await connect(open([ask, finish]));
  const created = await call('create_task', { description: 'Serve' });
  const { task_id } = created.structuredContent as { task_id: string };
  await call('run', { task_ids: [task_id], role: 'engineer' });

  const asked = await call('wait_for_task', { task_id });
  const { attempt, awaiting } = asked.structuredContent as {
    attempt: number;
    awaiting: { input_id: string; question: string };
  };
  await call('answer', { task_id, attempt, input_id: awaiting.input_id, text: '8080' });
  const done = await call('wait_for_task', { task_id });

  expect(awaiting.question).toBe('Which port?');
  expect(done.structuredContent).toMatchObject({ status: 'complete' });
});

test('mcp.answer of the configuration hides the tool answer', async () => {
  const project = open([finish]);
  const given = JSON.parse(readFileSync(project.configFile, 'utf8'));
  writeFileSync(project.configFile, JSON.stringify({ ...given, mcp: { answer: 'off' } }));
  const { client } = await connect(project);

  const { tools } = await client.listTools();

  expect(tools.map(({ name }) => name)).toContain('wait_for_task');
  expect(tools.map(({ name }) => name)).not.toContain('answer');
});

test('a server that is gone is started again for the next call', {
  tags: ['slow'],
}, async () => {
  const project = open([finish]);
  const { call } = await connect(project);
  await call('list_tasks');
  await project.stopServer('SIGKILL');

  const lost = await call('list_tasks');
  const again = await call('list_tasks');

  expect(lost).toMatchObject({
    isError: true,
    structuredContent: { error: { code: 'server_lost' } },
  });
  expect(again.structuredContent).toMatchObject({ tasks: [] });
});

test('the official client is told at once that a message is too long, and goes on', {
  tags: ['slow'],
}, async () => {
  const { call } = await connect(open([finish]));
  const description = 'x'.repeat(1_200_000);

  await expect(call('create_task', { description })).rejects.toThrow(
    'a message holds at most 1048576 characters',
  );
  expect((await call('list_tasks')).structuredContent).toMatchObject({ tasks: [] });
});

test('broken input is answered, and the end of the input ends the program during a wait', {
  tags: ['slow'],
}, async () => {
  const ask = { calls: [{ tool: 'bash', arguments: { command: 'sleep 30' } }] };
  const project = open([ask, finish]);
  const task_id = (await project.agent('create', 'Sleep')).out.trim();
  await project.agent('engineer', task_id, '--async');
  const child = spawn(process.execPath, [bin('agent'), 'mcp'], {
    cwd: project.root,
    env: project.env,
  });
  const ended = project.collect(child);
  const send = (message: unknown) => child.stdin.write(`${JSON.stringify(message)}\n`);

  child.stdin.write(`not json\n${'x'.repeat(1_100_000)}\n`);
  const params = { protocolVersion: '2025-11-25', capabilities: {} };
  send({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
  const wait = { name: 'wait_for_task', arguments: { task_id, timeout_seconds: 3_600 } };
  send({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: wait });
  child.stdin.end();
  const { code, out } = await ended;

  const answers = out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(code).toBe(0);
  expect(answers.map(({ error, id }) => error?.code ?? id)).toEqual([-32700, -32600, 1, 2]);
});

test('a program that has no token, and an assistant with a wrong id, are told what they can use', {
  tags: ['slow'],
}, async () => {
  const project = open([finish]);
  const { call } = await connect(project);

  const unknown = await call('task_status', { task_id: 'bd-none' });
  const refused = await fetch(`${project.serverFile()?.url}/mcp`, { method: 'POST', body: '{}' });
  const said = await refused.text();

  expect(JSON.stringify(unknown.content)).toContain('list_tasks shows the tasks');
  expect(JSON.stringify(unknown.content)).not.toContain('agent list');
  expect([refused.status, said]).toEqual([401, expect.stringContaining("'agent token' prints")]);
  expect(said).not.toContain(project.root);
  expect(said).not.toContain('state');
});
