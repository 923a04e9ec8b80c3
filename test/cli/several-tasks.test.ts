import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';

const hang = { say: '', calls: [{ tool: 'bash', arguments: { command: 'sleep 600' } }] };

/** Agents hang until they are cancelled; two may run. */
const open = (script: object = { turns: Array(4).fill(hang) }) => {
  const project = openProject({
    api: { backend: 'scripted', script: 'script.json' },
    server: { port: 0, max_concurrent_agents: 2 },
  });
  writeFileSync(
    join(project.configFile, '..', 'script.json'),
    JSON.stringify({ scripts: [script] }),
  );
  const create = async (title: string): Promise<string> =>
    (await project.agent('create', title, '--role', 'engineer')).out.trim();
  const running = async (count: number): Promise<void> => {
    const tasks = async () => JSON.parse((await project.agent('ps', '--json')).out);
    while (
      (await tasks()).filter(({ phase }: { phase: string }) => phase === 'acting').length < count
    )
      await delay(20);
  };
  return { ...project, create, running };
};

test('close, reopen, cancel and retry take several tasks, and a refusal stops none of the others', {
  tags: ['slow'],
}, async () => {
  const { agent, create } = open();
  const [one, two] = [await create('one'), await create('two')];

  const closed = await agent('close', one, two);
  const reopened = await agent('reopen', one, 'bd-nope', two);
  await agent('run', '--async');
  const cancelled = await agent('cancel', one, two, '--json');
  const retried = await agent('retry', one, two, '--verify', 'npm test');
  await agent('cancel', one, two);

  expect(closed).toEqual({ code: 0, out: `${one} complete\n${two} complete\n`, err: '' });
  expect([reopened.code, reopened.out]).toEqual([3, `${one} queued\n${two} queued\n`]);
  expect(reopened.err).toContain('bd-nope does not exist');
  const lines = cancelled.out.trim().split('\n');
  expect(lines.map((line) => JSON.parse(line).task_id)).toEqual([one, two]);
  expect(retried.code).toBe(0);
  expect(retried.err).toContain(`agent wait ${one} ${two}`);
});

test('retry follows its attempt, also in a pipe, and keeps the options that it does not name', {
  tags: ['slow'],
}, async () => {
  const { agent, onTerminal, create } = open({ turns: [{ say: 'I look.', calls: [] }] });
  const id = await create('one');
  const failed = await agent('engineer', id, '--verify', 'false', '--max-turns', '3');

  const piped = await agent('retry', id, '--verify', 'false');
  const retried = await onTerminal('retry', id, '--verify', 'test -d .');
  const usage = await agent('usage');

  expect(failed.code).toBe(1);
  expect(piped.code).toBe(1);
  expect(piped.out).toContain(`${id} turn 1/3`);
  expect(retried.code).toBe(0);
  expect(retried.out).toContain(`${id} turn 1/3`);
  expect(retried.out).toMatch(new RegExp(`^${id} complete in `, 'm'));
  expect(usage.out).toMatch(/TRIES +COMPLETE +FAILED +CANCELLED +TIME/);
});

test('server stop and Ctrl-C in the terminal of a server count what is parked and what waits', {
  tags: ['slow'],
}, async () => {
  const { agent, create, running, start, serverFile } = open();
  for (const title of ['one', 'two', 'three', 'four', 'five']) await create(title);
  await agent('run', '--async');
  await running(2);

  const stopped = await agent('server', 'stop');
  const listed = await agent('list');
  const server = start('agent-server', ['--server']);
  let err = '';
  server.stderr?.setEncoding('utf8').on('data', (text) => {
    err += text;
  });
  while (serverFile() === null) await delay(20);
  await running(2);
  server.kill('SIGINT');
  await once(server, 'close');

  const counts = '2 running tasks are parked and 3 wait; they go on when a server starts';
  expect(stopped.out).toContain(`${counts}: agent server start\n`);
  expect(listed.err).toBe(
    'note: no server runs, so 5 tasks make no progress; start one with: agent server start\n',
  );
  expect(err).toContain(
    `agent-server: stopping; ${counts}: agent server start (Ctrl-C again exits at once)\n`,
  );
});

test('delete takes several tasks in any order, also where one depends on another', async () => {
  const { agent, create } = open();
  const [one, two, three] = [await create('one'), await create('two'), await create('three')];
  await agent('dep', 'add', two, one);
  await agent('dep', 'add', three, two);
  const needed = await create('needed');
  const left = await create('left');
  await agent('dep', 'add', left, needed);

  const deleted = await agent('delete', one, needed, two, 'bd-nope', three, one);
  const listed = JSON.parse((await agent('list', '--json')).out);

  expect(deleted.out).toBe(`${three} deleted\n${two} deleted\n${one} deleted\n`);
  expect(deleted.code).toBe(3);
  expect(deleted.err).toContain(`needed by ${left}`);
  expect(deleted.err).toContain('bd-nope does not exist');
  expect(listed.map(({ task_id }: { task_id: string }) => task_id)).toEqual([needed, left]);
});

test('a task that waits for others is not closed, and the answer says what to do', async () => {
  const { agent, create } = open();
  const first = await create('one');
  const id = (await agent('create', 'two', '--deps', first)).out.trim();

  const closed = await agent('close', id);

  expect(closed).toEqual({
    code: 4,
    out: '',
    err: `agent: task has unmet dependencies [${first}]; complete them first with 'agent run ${first}', or remove them with 'agent dep remove ${id} ${first}'\n`,
  });
});
