import { expect, test, vi } from 'vitest';
import { openProject } from '../support/cli.ts';
import { type Answer, startModelServer } from '../support/model-server.ts';

const finished: Answer = {
  kind: 'answer',
  calls: [{ name: 'finish', arguments: '{"status":"done","summary":"well"}' }],
};
const usedUp: Answer = {
  kind: 'status',
  status: 429,
  headers: { 'retry-after': '600' },
  body: { error: { message: 'x', code: 'insufficient_quota' } },
};

test('every command says until when a task is parked, and why; a retry tries now', async () => {
  let isOver = false;
  const provider = await startModelServer(() => (isOver ? finished : usedUp));
  const project = openProject({ api: { base_url: provider.baseURL, provider_model: 'm' } });
  const key = { OPENAI_API_KEY: 'sk-test-0123456789' };
  const agent = (...words: string[]) => project.agentWith(key, ...words);
  const id = (await agent('create', 'Fix the login form', '--role', 'engineer')).out.trim();
  const running = agent('run');
  const read = async (...words: string[]): Promise<string> => (await agent(...words)).out;
  await vi.waitFor(async () => expect(await read('list')).toContain('parked until'));

  const parked = /parked until (\w{3} )?\d\d:\d\d/;
  const why = 'provider limit: the quota of the provider account is used up: x';
  expect(await read('list')).toMatch(parked);
  expect(await read('ps')).toMatch(parked);
  const shown = await read('show', id);
  expect(shown).toMatch(parked);
  expect(shown).toContain(why);
  expect(shown).toContain(`agent retry ${id}`);
  const explained = await read('explain', id);
  expect(explained).toContain(`  because ${why}; to try now: agent retry ${id}\n`);
  expect(explained).not.toContain('at the latest');
  expect(await read('logs', id)).toMatch(new RegExp(`${parked.source}: ${why}`));
  const waited = await agent('wait', id, '--timeout', '1');
  expect(waited.err).toMatch(parked);
  expect(waited.err).toContain(why);
  expect(waited.err).toContain(`to try now: agent retry ${id}`);
  const again = await agent('engineer', id);
  expect(again.code).toBe(4);
  expect(again.err).toMatch(
    new RegExp(
      `${id} is parked as attempt 1; it goes on at (\\w{3} )?\\d\\d:\\d\\d; 'agent retry ${id}' tries now`,
    ),
  );
  const view = JSON.parse(await read('show', id, '--json'));
  expect(view).toMatchObject({ status: 'queued', phase: 'backing_off', parked_reason: why });

  const next = (await agent('create', 'Fix the logout form')).out.trim();
  const started = (await agent('engineer', next, '--async')).out;
  expect(started).toMatch(
    new RegExp(`^${next} is ${parked.source}: ${why}; to try now: agent retry ${next}`),
  );

  isOver = true;
  expect((await agent('retry', id)).code).toBe(0);
  const ran = await running;

  expect(ran.code).toBe(0);
  expect(ran.out).toMatch(
    new RegExp(`${id} ${parked.source}: ${why}; to try now: agent retry ${id}`),
  );
  expect(ran.out).toMatch(/1 task complete/);
  expect(JSON.parse(await read('show', id, '--json'))).toMatchObject({ attempt: 1 });
});

test('a retry while the limit of the provider is known says when it goes on', async () => {
  const gaveUp: Answer = {
    kind: 'answer',
    calls: [{ name: 'finish', arguments: '{"status":"failed","summary":"no"}' }],
  };
  let isUsedUp = false;
  const provider = await startModelServer(() => (isUsedUp ? usedUp : gaveUp));
  const project = openProject({ api: { base_url: provider.baseURL, provider_model: 'm' } });
  const agent = (...words: string[]) =>
    project.agentWith({ OPENAI_API_KEY: 'sk-test-0123456789' }, ...words);
  const [one = '', two = '', three = ''] = await Promise.all(
    ['one', 'two', 'three'].map(async (title) => (await agent('create', title)).out.trim()),
  );
  for (const id of [one, two]) await agent('engineer', id);
  isUsedUp = true;
  await agent('engineer', three, '--async');
  await vi.waitFor(async () => expect((await agent('ps')).out).toContain('parked until'));

  const retried = await agent('retry', one);
  const json = JSON.parse((await agent('retry', two, '--json')).out);

  expect(retried.code).toBe(0);
  expect(`${retried.out}${retried.err}`).toMatch(
    new RegExp(`${one} is parked until [^;]*; to try now: agent retry ${one}`),
  );
  expect(retried.err).not.toContain('in the background');
  expect(json).toMatchObject({ task_id: two, status: 'queued', phase: 'backing_off' });
  expect(json.parked_until).toBeDefined();
});

test('below its table a run says why a task pauses, and how to try a parked one now', {
  tags: ['slow'],
}, async () => {
  const limit = (error: object): Answer => ({
    kind: 'status',
    status: 429,
    headers: { 'retry-after': '1' },
    body: { error },
  });
  const answers = [limit({ message: 'slow down please' }), limit({ code: 'insufficient_quota' })];
  const provider = await startModelServer(() => answers.shift() ?? finished);
  const project = openProject({ api: { base_url: provider.baseURL, provider_model: 'm' } });
  const key = { OPENAI_API_KEY: 'sk-test-0123456789' };
  await project.agentWith(key, 'server', 'start');
  const id = (await project.agent('create', 'x', '--role', 'engineer')).out.trim();

  const ran = await project.onTerminal('run');

  expect(ran.code).toBe(0);
  expect(ran.err).toContain(`${id} pauses: the provider answered 429 slow down please`);
  expect(ran.err).toContain(`to try now, in another terminal: agent retry ${id}`);
});
