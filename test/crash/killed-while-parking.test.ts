import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { openProject } from '../support/cli.ts';
import { isLong } from '../support/long.ts';
import { startModelServer } from '../support/model-server.ts';
import { finished, noQuota, writeHalf } from '../support/provider-limits.ts';
import { temporaryFolder } from '../support/temporary.ts';
import { transpileTests } from '../support/transpiled.ts';

const key = { OPENAI_API_KEY: 'sk-test-0123456789' };

/** `killed-server.ts`, ready to run. */
const killedServer = (): string => {
  const folder = temporaryFolder();
  const program = join('test', 'crash', 'killed-server.ts');
  transpileTests(folder, [program]);
  return join(folder, program.replace(/ts$/, 'js'));
};

/** A project whose provider is at a limit at the second call, until `isOver`. */
const open = async () => {
  let isOver = false;
  const provider = await startModelServer(({ body }) => {
    if (!JSON.stringify(body).includes('half.txt')) return writeHalf;
    return isOver ? finished : noQuota(3_600);
  });
  const project = openProject(
    {
      server: { port: 0, max_concurrent_agents: 1 },
      api: { base_url: provider.baseURL, provider_model: 'm' },
    },
    { ownServer: true },
  );
  const agent = async (...words: string[]) => {
    const { code, out, err } = await project.agentWith(key, ...words);
    expect(code, err).toBe(0);
    return out.trim();
  };
  const view = async (id: string) => JSON.parse(await agent('show', id, '--json'));
  const endLimit = (): void => {
    isOver = true;
  };
  return { ...project, provider, agent, view, endLimit };
};

/** Starts the server that is killed, gives it the task, and resolves when it is dead. */
const runUntilKilled = async (
  { root, env, serverFile, agentWith }: Awaited<ReturnType<typeof open>>,
  id: string,
  args: readonly string[],
): Promise<void> => {
  const server = spawn(process.execPath, [killedServer(), ...args], {
    cwd: root,
    env: { ...env, ...key },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = new Promise((resolve) => server.once('exit', (_, signal) => resolve(signal)));
  await vi.waitFor(() => expect(serverFile()?.pid).toBe(server.pid));
  await agentWith(key, 'engineer', id, '--async');
  expect(await ended).toBe('SIGKILL');
};

const kills = [
  { moment: 'before', state: { queued: 'parked' }, calls: 2 },
  { moment: 'after', state: { queued: 'parked' }, calls: 2 },
  { moment: 'before', state: 'parked', calls: 3 },
  { moment: 'after', state: 'parked', calls: 3 },
  { moment: 'before', state: { started: 'parking' }, calls: 3 },
  { moment: 'after', state: { started: 'parking' }, calls: 2 },
];

test.each(isLong ? kills : kills.slice(0, 2))(
  'a server killed $moment the commit of $state parks the task once, without a slot, and loses nothing',
  { tags: ['slow'] },
  async ({ moment, state, calls }) => {
    const project = await open();
    const { agent, view, provider, root } = project;
    const id = await agent('create', 'x', '--role', 'engineer');
    await runUntilKilled(project, id, [moment, JSON.stringify(state)]);

    await agent('server', 'start');
    const parked = await vi.waitFor(async () => {
      const now = await view(id);
      expect(now.parked_until).toBeDefined();
      return now;
    });
    const asked = provider.requests.length;
    const other = await agent('create', 'y', '--role', 'engineer');
    await agent('engineer', other, '--model', 'scripted');
    const otherEnd = await view(other);
    project.endLimit();
    await agent('retry', id);
    await agent('wait', id, '--timeout', '30');

    expect(parked).toMatchObject({ status: 'queued', phase: 'backing_off', attempt: 1 });
    expect(asked, 'calls of the provider').toBe(calls);
    expect(otherEnd.status, 'the only slot is free').toBe('complete');
    expect(await view(id)).toMatchObject({
      status: 'complete',
      attempt: 1,
      usage: { turns: 2, tool_calls: 2 },
    });
    expect(readFileSync(join(root, 'half.txt'), 'utf8')).toBe('half');
    const journal = (await agent('logs', id, '--json')).split('\n').map((line) => JSON.parse(line));
    expect(journal.filter(({ type }) => type === 'completed')).toHaveLength(1);
    const begun = journal.filter(({ type }) => type === 'tool_start');
    expect(begun.map(({ data }) => data.tool)).toEqual(['write', 'finish']);
  },
);
