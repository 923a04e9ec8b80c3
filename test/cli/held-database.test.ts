import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openProject } from '../support/cli.ts';
import { whileHealthIsAsked } from '../support/health.ts';

/** Another process that holds the lock under which a database is written. */
const holdDatabase = async (file: string): Promise<{ release(): Promise<void> }> => {
  const program = `const db = new (require('libsql'))(process.argv[1], { timeout: 5000 });
    db.exec('begin immediate');
    process.stdout.write('held');
    process.stdin.once('end', () => { db.exec('rollback'); db.close(); }).resume();`;
  const child = spawn(process.execPath, ['-e', program, file], {
    cwd: import.meta.dirname,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return {
    release: async () => {
      child.stdin.end();
      await once(child, 'exit');
    },
  };
};

/** A running server with one task. */
const openServed = async () => {
  const project = openProject(undefined, { ownServer: true });
  const { agent, stateDir, serverFile } = project;
  const id = (await agent('create', 'Do it')).out.trim();
  await agent('server', 'start');
  const { url } = serverFile();
  const token = readFileSync(join(stateDir, 'token'), 'utf8').trim();
  const call = async (method: string, params: object) => {
    const response = await fetch(`${url}/a2a/execute`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
    return (await response.json()) as { readonly result?: Task; readonly error?: Refusal };
  };
  const statusOf = async (task_id: string) => (await call('status', { task_id })).result?.status;
  const hold = () => holdDatabase(join(stateDir, 'journal.db'));
  const health = async () => (await (await fetch(`${url}/health`)).json()) as Health;
  return { ...project, url, id, call, statusOf, hold, health };
};
interface Health {
  readonly status: string;
  readonly checks: Readonly<Record<string, object>>;
}
interface Task {
  readonly task_id: string;
  readonly status: string;
}
interface Refusal {
  readonly message: string;
  readonly data: { readonly code: string };
}

const untilComplete = async (agent: ReturnType<typeof openProject>['agent'], id: string) =>
  expect((await agent('wait', id)).code).toBe(0);

test('while another program holds the database, the server answers; what must be saved waits for it', {
  tags: ['slow'],
}, async () => {
  const { url, id, call, statusOf, hold, agent } = await openServed();
  const { release } = await hold();
  let isReleased = false;

  const saved = Promise.all([
    call('create', { description: 'Do that' }),
    call('execute', { task_id: id, role: 'engineer', request_id: 'r1' }),
  ]).then((answers) => ({ answers, wasReleased: isReleased }));
  const took = await whileHealthIsAsked(url, async () => {
    for (let n = 0; n < 20; n += 1) expect(await statusOf(id)).toMatch(/queued|started/);
  });
  isReleased = true;
  await release();

  const { answers, wasReleased } = await saved;
  expect(took.length).toBeGreaterThan(0);
  expect(wasReleased).toBe(true);
  expect(answers.map(({ error }) => error)).toEqual([undefined, undefined]);
  await untilComplete(agent, id);
  expect((await agent('list', '--json')).out).toContain('Do that');
});

test('when another program holds the database for too long, the error says so; afterwards the work goes on', {
  tags: ['slow'],
}, async () => {
  const { id, call, statusOf, hold, agent, health } = await openServed();
  const { release } = await hold();

  const [created, executed] = await Promise.all([
    call('create', { description: 'Do that' }),
    call('execute', { task_id: id, role: 'engineer' }),
  ]);
  const { checks } = await health();
  await release();

  for (const { error } of [created, executed])
    expect(error?.message).toMatch(
      /another program has kept the database .*journal\.db locked for [34] s/,
    );
  expect(checks['store']).toEqual({
    status: 'failing',
    detail: expect.stringContaining('another program holds the database'),
  });
  expect(await statusOf(id)).toBe('queued');
  await vi.waitFor(async () => expect(await health()).toMatchObject({ status: 'healthy' }));
  expect(await agent('engineer', id)).toMatchObject({ code: 0 });
});

test('a server that runs and does not answer is named, with its process; it can be stopped', {
  tags: ['slow'],
}, async () => {
  const { agent, stateDir, serverFile } = openProject(undefined, { ownServer: true });
  await agent('server', 'start');
  const { pid } = serverFile();
  process.kill(pid, 'SIGSTOP');
  onTestFinished(() => void process.kill(pid, 'SIGCONT'));

  const [run, doctor] = await Promise.all([agent('engineer', 'bd-none'), agent('doctor')]);

  expect(run).toMatchObject({
    code: 6,
    out: '',
    err: expect.stringMatching(
      new RegExp(`the server of this project \\(pid ${pid}, .*has not answered.*${stateDir}`),
    ),
  });
  expect(run.err).not.toContain('starting a server');
  expect(doctor.out).toContain(`(pid ${pid}, `);
});
