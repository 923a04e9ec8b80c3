import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';
import { temporaryFolder } from '../support/temporary.ts';

test('a failing verify shows what failed first and the end, in the run and in show', async () => {
  const { agent } = openProject();
  const id = (await agent('create', 'x')).out.trim();
  const verify = 'seq -f "ok %g" 300; echo "not ok 301 sum"; seq -f "ok %g" 302 900; exit 1';

  const ran = await agent('engineer', id, '--model', 'scripted', '--verify', verify);
  const shown = await agent('show', id);

  const full = await agent('logs', id, '--full');

  expect(full.out).toContain('ok 430\n');
  expect((await agent('logs', id)).out).not.toContain('ok 430\n');
  for (const { out } of [ran, shown]) {
    expect(out).toMatch(/not ok 301 sum\n +ok 302\n/);
    expect(out).toMatch(/\n +\[… \d+ lines are left out …\]\n/);
    expect(out).toContain('ok 900');
    expect(out).not.toContain('ok 300\n');
  }
});

test('a run skips a task without a role, and the command that gives it one works', async () => {
  const { agent } = openProject();
  const id = (await agent('create', 'x', '--label', 'red')).out.trim();

  const skipped = await agent('run');
  const command = /agent (edit \S+ --role engineer)/.exec(skipped.err)?.[1]?.split(' ') ?? [];
  const edited = await agent(...command);
  const { labels } = JSON.parse((await agent('show', id, '--json')).out);

  expect(skipped.code).toBe(4);
  expect([edited.code, edited.out]).toEqual([0, `${id} edited\n`]);
  expect(labels.toSorted()).toEqual(['red', 'role:engineer']);
});

test('doctor prints a table that fits the terminal, and no JSON', async () => {
  const { onTerminal } = openProject();

  const { out } = await onTerminal('doctor');

  expect(out.split('\n')[0]).toMatch(/^STATUS +CHECK +DETAIL$/);
  expect(out).toMatch(/^ok +project +/m);
  expect(out).not.toContain('{');
});

test('config set refuses a script that is not there, and doctor shows what counts among the other checks', async () => {
  const { agentWith } = openProject({ api: {} });
  const home = temporaryFolder();
  const agent = (...words: string[]) =>
    agentWith({ XDG_CONFIG_HOME: home, AGENT_SERVER_CONFIG: undefined }, ...words);

  const set = await agent('config', 'set', 'api.script', '/nowhere/script.json');
  const other = await agent('config', 'set', 'agent.max_turns', '9');
  const checked = await agent('doctor');

  expect([set.code, other.code, checked.code]).toEqual([78, 0, 1]);
  expect(set.err).toContain('nothing was written: api.script: /nowhere/script.json: ');
  expect(other.err).toBe('');
  expect(checked.out).toMatch(/^ok +config /m);
  expect(checked.out).toMatch(/^problem +model +OPENAI_API_KEY is not set/m);
  expect(checked.out).toMatch(/^ok +workspace /m);
});
