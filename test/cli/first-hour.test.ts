import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';
import { temporaryFolder } from '../support/temporary.ts';

test('a key that stands on the command line is not repeated, and the advice says where it goes', async () => {
  const { agent } = openProject();
  const advice = /export OPENAI_API_KEY=…, then agent server restart\n$/;

  for (const words of [
    ['config', 'set', 'api.key', 'sk-abc'],
    ['config', 'set', 'OPENAI_API_KEY', 'sk-abc'],
    ['config', 'set', 'OPENAI_API_KEY=sk-abc'],
    ['OPENAI_API_KEY=sk-abc'],
  ]) {
    const { code, out, err } = await agent(...words);
    expect(code).toBe(2);
    expect(err).toMatch(advice);
    expect(out + err).not.toContain('sk-abc');
  }
});

test('advice that is pasted as it is says what to put in place of its placeholder', async () => {
  const { agent } = openProject();
  const price = '{"input_per_million": <usd>, "output_per_million": <usd>}';

  for (const words of [
    ['api.prices."gpt-x"', price],
    ['budget.day_usd', '<usd>'],
  ]) {
    const { code, err } = await agent('config', 'set', ...words);
    expect(code).toBe(78);
    expect(err).toMatch(/; put your own value in place of <usd>: a number, such as 5\n$/);
  }
});

test('a limit without a price is named as the whole key', async () => {
  const { agent } = openProject({ api: { backend: 'builtin', provider_model: 'my-model' } });

  const attempt = await agent('config', 'set', 'agent.max_cost_usd', '5');
  const role = await agent('config', 'set', 'roles.tester.max_cost_usd', '5');
  const pair = await agent('config', 'set', 'agent.max_turns=5');

  expect(attempt.err).toContain('nothing was written: agent.max_cost_usd: the engineer runs');
  expect(role.err).toContain('nothing was written: roles.tester.max_cost_usd: the tester runs');
  expect(pair.err).toContain('use: agent config set agent.max_turns 5');
});

test('a role with one word says how to make a task of it', async () => {
  const { agent } = openProject();

  const { code, err } = await agent('engineer', 'fix');

  expect(code).toBe(3);
  expect(err).toContain('agent create fix --role engineer --run');
});

test('doctor in the home folder says why it is no project, and checks what needs none', async () => {
  const { agentWith, root } = openProject();

  const { code, out, err } = await agentWith({ HOME: root }, 'doctor');

  expect(code).toBe(78);
  expect(err).toContain(`agent: ${root} is your home folder`);
  expect(out).toMatch(/^problem +project +.* is your home folder/m);
  for (const check of ['version', 'config', 'model', 'git'])
    expect(out).toMatch(new RegExp(`^\\w+ +${check} `, 'm'));
});

test('a state folder that is the home folder, its parent, the root or around the project is refused', async () => {
  const { agentWith, root } = openProject();
  const home = temporaryFolder();
  const above = (folder: string) => dirname(folder);

  for (const [state, why] of [
    [home, /AGENT_STATE_DIR. is your home folder, .* set AGENT_STATE_DIR to/],
    [above(home), /AGENT_STATE_DIR. holds your home folder/],
    ['/', /AGENT_STATE_DIR. is the root of the file system/],
    [above(root), /lies in the state folder .* set AGENT_STATE_DIR to|holds your home folder/],
  ] as const)
    for (const words of [['list'], ['server', 'start'], ['doctor']]) {
      const { code, out, err } = await agentWith({ HOME: home, AGENT_STATE_DIR: state }, ...words);
      expect(code).not.toBe(0);
      expect(out + err).toMatch(why);
    }
});

test('config set says when a file that comes first overrules the value', async () => {
  const { agent, agentWith, root } = openProject({ api: { backend: 'scripted' } });
  const other = join(temporaryFolder(), 'other.json');
  writeFileSync(other, JSON.stringify({ agent: { max_turns: 7 } }));

  const overruled = await agentWith(
    { AGENT_SERVER_CONFIG: other },
    ...['config', 'set', 'agent.max_turns', '5', '--project', root],
  );
  const counts = await agentWith(
    { AGENT_SERVER_CONFIG: other },
    ...['config', 'set', 'agent.max_retries', '1', '--project', root],
  );

  expect(overruled).toMatchObject({
    code: 0,
    err: expect.stringContaining(
      `note: it does not count in this project: ${other} sets agent.max_turns`,
    ),
  });
  expect(counts.err).not.toContain('does not count');
  expect(await agent('config', 'get', 'agent.max_retries')).toMatchObject({ code: 0 });
});
