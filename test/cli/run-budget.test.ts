import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parseScript } from '../../src/actors/model/script.ts';
import { createScriptedModel } from '../../src/actors/model/scripted.ts';
import { play } from '../model-server/play.mjs';
import { createModelServer } from '../model-server/server.mjs';
import { openProject } from '../support/cli.ts';
import { describeUnless } from '../support/needs.ts';
import { freshAddress, noPostgres } from '../support/postgres.ts';
import { openServer } from '../support/servers.ts';
import { temporaryFolder } from '../support/temporary.ts';

const model = 'scripted-over-http';
const call = (tool: string, args: object) => ({ say: '', calls: [{ tool, arguments: args }] });
const turns = [
  call('find', { pattern: '*' }),
  call('finish', { status: 'done', summary: 'looked' }),
];
const env = { OPENAI_API_KEY: 'no-key-a-script-answers' };

/** A provider whose smallest call costs more than a cent. */
const dearProvider = async () => {
  const script = parseScript({ scripts: [{ turns }] });
  const provider = await createModelServer({ answer: play(createScriptedModel(script)) });
  onTestFinished(provider.close);
  return {
    backend: 'builtin',
    base_url: provider.baseURL,
    provider_model: model,
    prices: { [model]: { input_per_million: 10_000, output_per_million: 10_000 } },
  };
};

test('a run at its budget ends with 6 and says how to go on, which it does without lost work', async () => {
  const { agentWith } = openProject({ api: await dearProvider() });
  const agent = (...words: string[]) => agentWith(env, ...words);
  const id = (await agent('create', 'look', '--role', 'engineer')).out.trim();

  const first = await agent('run', '--max-cost', '0.01');
  const explained = await agent('explain', id);
  const used = await agent('usage');
  const more = await agent('run', id, '--max-cost', '1000');

  expect(first.code).toBe(6);
  expect(`${first.out}${first.err}`).toMatch(/budget\.run_usd/);
  expect(explained.out).toContain(`agent run ${id} --max-cost <usd>`);
  expect(used.out).toMatch(/spent today \$[\d.]+, this month \$/);
  expect(more.code).toBe(0);
  expect(JSON.parse((await agent('show', id, '--json')).out)).toMatchObject({
    status: 'complete',
    attempt: 1,
  });
});

test('the advice to run a refused task again names its flags', async () => {
  const { agentWith } = openProject({ api: { ...(await dearProvider()), prices: {} } });

  const limited = await agentWith(env, 'engineer', 'do it well', '--max-cost', '1');

  expect(limited.err).toMatch(/is kept; run it with: agent engineer \S+, and the same flags/);
  expect(limited.err).toContain('--max-cost: the price of ');
});

test('the first paid run that was accepted says once what limits hold', async () => {
  const { agent, agentWith } = openProject({ api: { ...(await dearProvider()), prices: {} } });
  const id = (await agent('create', 'look', '--role', 'engineer')).out.trim();

  const planned = await agent('run', '--dry-run');
  const refused = await agent('engineer', id);
  await agent('server', 'stop');
  const first = await agentWith(env, 'engineer', id);
  const second = await agentWith(env, 'engineer', 'look again');

  expect(planned.err).not.toContain('no limit of cost');
  expect(refused.code).not.toBe(0);
  expect(refused.err).not.toContain('no limit of cost');
  expect(first.code).toBe(0);
  expect(first.err).toContain(`agent config set 'api.prices."${model}"'`);
  expect(first.err).toMatch(/no limit of cost is set; an attempt ends after 50 turns/);
  expect(second.err).not.toContain('no limit of cost');
});

test.each([
  ['has a budget', { budget: { day_usd: 1_000 } }, {}, null],
  ['has none', { agent: { max_turns: 7 } }, { budget: { day_usd: 1 } }, /ends after 7 turns/],
])('the limits that are said are those of the server, which %s', async (_, there, here, says) => {
  const api = await dearProvider();
  const project = openProject({ api, ...there });
  const config = join(temporaryFolder(onTestFinished), 'config.json');
  writeFileSync(config, JSON.stringify({ api, ...here }));
  await project.agentWith(env, 'server', 'start');

  const run = await project.agentWith(env, 'engineer', 'look around', '--config', config);

  expect(run.code).toBe(0);
  if (says === null) expect(run.err).not.toContain('no limit of cost');
  else expect(run.err).toMatch(says);
});

test('the model whose price is unknown is that of the role', async () => {
  const roles = { engineer: { model: 'own-model' } };
  const { agentWith } = openProject({ api: { ...(await dearProvider()), prices: {} }, roles });

  const run = await agentWith(env, 'engineer', 'look around');

  expect(run.err).toContain(`agent config set 'api.prices."own-model"'`);
});

test('a model that costs nothing needs no limit', async () => {
  const prices = { [model]: { input_per_million: 0, output_per_million: 0 } };
  const { agentWith } = openProject({ api: { ...(await dearProvider()), prices } });

  const run = await agentWith(env, 'engineer', 'look around');

  expect(run.code).toBe(0);
  expect(run.err).not.toContain('no limit of cost');
});

test('--yes starts more than 10 tasks without a question', async () => {
  const project = openProject();
  for (let n = 0; n < 11; n += 1) await project.agent('create', `Task ${n}`, '--role', 'engineer');

  const { code, out } = await project.typing([], 'run', '--async', '--yes');

  expect(out).not.toContain('Go on?');
  expect(code).toBe(0);
});

describeUnless(noPostgres)('servers that share a store', () => {
  test('share a budget of the day: what one spent keeps the other from a call', async () => {
    const address = await freshAddress();
    const config = { api: await dearProvider(), budget: { day_usd: 0.01 } };
    const [one, two] = [
      await openServer(address, { config }),
      await openServer(address, { config }),
    ];
    const at = (server: typeof one, ...words: string[]) =>
      server.agentWith({ ...env, DATABASE_URL: address }, ...words);
    for (const server of [one, two])
      expect(await at(server, 'server', 'start')).toMatchObject({ code: 0 });

    const spent = await at(one, 'engineer', 'look around', '--json');
    const kept = await at(two, 'engineer', 'look again', '--json');

    expect([spent.code, kept.code], JSON.stringify([spent.err, kept.err])).toEqual([6, 6]);
    const tasks = JSON.parse((await at(two, 'list', '--json')).out);
    expect(tasks).toMatchObject([
      { attempt: 1, parked_reason: expect.stringContaining('budget.day_usd') },
      { attempt: 0, parked_reason: expect.stringContaining('budget.day_usd') },
    ]);
  });
});
