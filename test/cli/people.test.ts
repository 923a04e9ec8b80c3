import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openDatabase } from '../../src/actors/store/database.ts';
import { openProject } from '../support/cli.ts';
import { openHub } from '../support/hub.ts';

const linesOf = (out: string): { [key: string]: string }[] =>
  out
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));

test('a token of right read sees, and may not run: exit 8, with words that name the right', async () => {
  const project = openProject();
  const { agent, agentWith } = project;
  await agent('create', 'Say hello');
  const made = JSON.parse(
    (
      await agent(
        'token',
        'create',
        '--name',
        'ana',
        '--rights',
        'read',
        '--expires',
        '30d',
        '--json',
      )
    ).out,
  );
  expect(made).toEqual({
    ...{ name: 'ana', rights: 'read', token: expect.stringMatching(/^ats_[\w-]{43}$/) },
    expires_at: expect.stringMatching(/^2\d{3}-/),
  });
  const asAna = { AGENT_TOKEN: made.token };

  const list = await agentWith(asAna, 'list', '--json');
  const run = await agentWith(asAna, 'run', '--role', 'engineer', '--yes');
  const json = await agentWith(asAna, 'create', 'Another', '--json');
  const config = await agentWith(asAna, 'config', 'set', 'agent.max_turns', '7');
  const wrong = await agentWith({ AGENT_TOKEN: 'ats_wrong' }, 'list');

  expect([list.code, linesOf(list.out).length]).toEqual([0, 1]);
  const words =
    'the token ana has the right read, and this needs run; ask who runs the server for a token with it';
  expect([run.code, run.err]).toEqual([8, expect.stringContaining(words)]);
  expect([json.code, JSON.parse(json.out).error]).toEqual([
    8,
    { needs: 'run', name: 'ana', rights: 'read', code: 'forbidden', message: words },
  ]);
  expect([config.code, config.err]).toEqual([8, expect.stringContaining('this needs admin')]);
  expect(wrong.code).toBe(8);
  // Nobody needs the rights of a token to know who has one.
  expect((await agent('token', 'list')).out).toContain('ana');
  expect((await agent('token', 'list', '--json')).out).not.toContain(made.token);
  expect((await agent('token', 'revoke', 'ana')).code).toBe(0);
  expect((await agentWith(asAna, 'list')).code).toBe(8);
});

test('a token comes from a file, too, and a bad one is refused without being shown', async () => {
  const { agent, root } = openProject();
  const { token } = JSON.parse(
    (await agent('token', 'create', '--name', 'bob', '--rights', 'run', '--json')).out,
  );
  const file = join(root, 'bob');
  writeFileSync(file, `${token}\n`);
  chmodSync(file, 0o600);

  expect((await agent('create', 'By bob', '--token-file', file)).code).toBe(0);
  writeFileSync(file, 'two words');
  const bad = await agent('list', '--token-file', file);
  expect([bad.code, bad.err.includes('two words')]).toEqual([2, false]);
  const lines = linesOf((await agent('audit', '--json')).out);
  expect(lines.map(({ name, via, action, outcome }) => [name, via, action, outcome])).toEqual([
    ['owner', 'cli', 'token.create', 'allowed'],
    ['bob', 'cli', 'create', 'allowed'],
    ['bob', 'cli', 'create', 'done'],
  ]);
});

test('open with a token signs in with its rights, and the hub never has it', async () => {
  const project = openProject();
  const { env, hub } = openHub(onTestFinished, [project]);
  const made = await project.agentWith(
    env,
    ...['token', 'create', '--name', 'ana', '--rights', 'admin', '--json'],
  );
  const asAna = { ...env, AGENT_TOKEN: JSON.parse(made.out).token };
  const { pid } = JSON.parse((await project.agentWith(asAna, 'hub', 'start', '--json')).out);

  const opened = await project.agentWith(asAna, 'open', '--print');
  const wrong = await project.agentWith({ ...env, AGENT_TOKEN: 'ats_wrong' }, 'open', '--print');
  const { origin, hash } = new URL(opened.out.trim());
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify({ code: hash.slice('#c='.length) });
  const login = await fetch(`${origin}/page/session`, { method: 'POST', headers, body });
  const { token } = (await login.json()) as { token: string };
  const who = await fetch(`${origin}/page/session`, {
    headers: { authorization: `Bearer ${token}` },
  });

  expect(await who.json()).toMatchObject({ name: 'ana', rights: 'admin' });
  expect([wrong.code, wrong.out]).toEqual([8, '']);
  if (process.platform === 'linux')
    expect(readFileSync(`/proc/${pid}/environ`, 'utf8')).not.toContain('AGENT_TOKEN');
  expect((await hub('stop')).code).toBe(0);
});

test('the audit log names what was done without a server, and shows its lines in several forms', async () => {
  const { agent } = openProject();
  const { task_id } = JSON.parse((await agent('create', 'Say hello', '--json')).out);
  await agent('edit', task_id, '--title', 'Hello');

  const lines = linesOf((await agent('audit', '--task', task_id, '--json')).out);
  expect(lines.map(({ name, via, address, action }) => [name, via, address, action])).toEqual([
    ['owner', 'cli', 'local', 'create'],
    ['owner', 'cli', 'local', 'edit'],
  ]);
  expect((await agent('audit', '--format', 'syslog')).out).toMatch(
    /^<109>1 \d{4}-\S+Z \S+ agent-task-server - create \[audit@32473 seq="1" name="owner"/,
  );
  expect((await agent('audit', '--since', '1h')).out).toContain(task_id);
  expect((await agent('audit', '--since', '2999-01-01')).out).toBe('');
});

test.each([
  ['a changed line', "update audit set name = 'bob' where seq = 2", 2, 'was changed'],
  ['a removed line', 'delete from audit where seq = 2', 2, 'is missing'],
  [
    'a removed last line',
    'delete from audit where seq = (select max(seq) from audit)',
    5,
    'is missing',
  ],
  ['all lines removed', 'delete from audit', 1, 'is missing'],
  [
    'the end removed, too',
    "delete from ledger where key = 'audit_end'",
    5,
    'has no record of the end',
  ],
])('audit --verify names %s, and exits 1', async (_, sql, seq, problem) => {
  const { agent, stateDir } = openProject();
  for (const title of ['One', 'Two']) await agent('create', title);
  await agent('token', 'create', '--name', 'ana', '--rights', 'read');

  const good = await agent('audit', '--verify');
  expect([good.code, good.out]).toEqual([
    0,
    expect.stringMatching(/^5 lines, each as it was written/),
  ]);
  const db = openDatabase({ file: join(stateDir, 'journal.db') });
  const tamper = db.prepare(sql);
  void db.write(function* () {
    yield* tamper.run();
  });
  db.close();
  const bad = await agent('audit', '--verify', '--json');

  expect([bad.code, JSON.parse(bad.out).broken]).toEqual([1, { seq, problem }]);
});
