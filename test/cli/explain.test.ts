import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { openProject } from '../support/cli.ts';
import { startModelServer } from '../support/model-server.ts';

const ofGuards = /^ {2}(yes|no) /m;

test('explain of a task that is over says how, when and why it ended, and how to go on', async () => {
  const { agent } = openProject();
  const id = (await agent('create', 'x')).out.trim();
  await agent('engineer', id, '--model', 'scripted');
  const complete = (await agent('explain', id)).out;
  await agent('reopen', id);
  await agent('cancel', id, '--reason', 'we need it no more');
  const cancelled = (await agent('explain', id)).out;
  const whole = JSON.parse((await agent('explain', id, '--json')).out);

  expect(complete).toMatch(new RegExp(`^${id} is complete, attempt 1 of 3 \\(engineer\\)\n`));
  expect(complete).toMatch(/^ {2}ended \d\d:\d\d in \d+\.\d s$/m);
  expect(complete).not.toMatch(ofGuards);
  expect(complete).not.toContain('because');
  expect(cancelled).toMatch(new RegExp(`^${id} is cancelled, attempt 1 `));
  expect(cancelled).toContain('because we need it no more\n');
  expect(cancelled).toMatch(new RegExp(`^ {2}agent retry ${id} +try again$`, 'm'));
  expect(cancelled).toMatch(/^ {2}may now: retry, review, close, cancel$/m);
  expect(cancelled).not.toMatch(ofGuards);
  expect(whole.guards.map(({ guard }: { guard: string }) => guard)).toContain('heldByNobodyElse');
});

test('explain of a task that waits says in words what a run needs', async () => {
  const { agent } = openProject();
  const first = (await agent('create', 'x')).out.trim();
  const second = (await agent('create', 'y', '--deps', first)).out.trim();
  const { out } = await agent('explain', second);

  expect(out.split('\n').filter((line) => ofGuards.test(line))).toEqual([
    '  yes  the task is in the tracker',
    `  no   its dependencies are complete: waits for ${first}`,
    '  yes  nobody else holds it',
    '  yes  agents can work in the project',
    '  yes  a model is set up',
    '  yes  no budget is used up',
    '  yes  the queue has room: 0 of 10,000 wait',
    '  yes  a slot is free: 0 of 3 are in use',
  ]);
});

test('explain of a started task does not say that a slot is free, for it has one', async () => {
  const project = openProject({ api: { backend: 'scripted', script: 'script.json' } });
  const calls = [{ tool: 'ask', arguments: { question: 'red or blue?' } }];
  const scripts = [{ turns: [{ say: '', calls }] }];
  writeFileSync(join(project.configFile, '..', 'script.json'), JSON.stringify({ scripts }));
  const id = (await project.agent('create', 'x')).out.trim();
  await project.agent('engineer', id, '--async');
  const out = await vi.waitFor(async () => {
    const explained = (await project.agent('explain', id)).out;
    expect(explained).toContain('red or blue?');
    return explained;
  });

  expect(out).toMatch(/^ {2}yes {2}a model is set up$/m);
  expect(out).not.toMatch(/slot is free|queue has room/);
  const { guards } = JSON.parse((await project.agent('explain', id, '--json')).out);
  const names = guards.map(({ guard }: { guard: string }) => guard);
  expect(names).toContain('modelCanBeCalled');
  expect(names).not.toContain('slotIsFree');
});

test('a task that pauses says why: in explain, show and the log', async () => {
  const provider = await startModelServer(() => ({
    kind: 'status',
    status: 429,
    headers: { 'retry-after': '60' },
    body: { error: { message: 'slow down please' } },
  }));
  const project = openProject({ api: { base_url: provider.baseURL, provider_model: 'm' } });
  const key = { OPENAI_API_KEY: 'sk-test-0123456789' };
  const id = (await project.agent('create', 'x')).out.trim();
  await project.agentWith(key, 'engineer', id, '--async');
  await vi.waitFor(async () =>
    expect((await project.agent('show', id)).out).toContain('started (pausing)'),
  );

  const why = 'the provider answered 429 slow down please';
  expect((await project.agent('show', id)).out).toMatch(new RegExp(`^ {2}because +${why}$`, 'm'));
  expect((await project.agent('explain', id)).out).toContain(
    `  because ${why}; the model is asked again by itself\n`,
  );
  expect((await project.agent('logs', id)).out).toContain(
    `  model call failed: ${why}; the provider asks for a pause of 1 min`,
  );
});

test('explain and show print the local time, as the rest of the CLI does', async () => {
  const { agent, start, collect } = openProject();
  const id = (await agent('create', 'x')).out.trim();
  await agent('engineer', id, '--model', 'scripted');
  const { completed_at } = JSON.parse((await agent('show', id, '--json')).out);
  // 5 h 45 min before UTC all the year.
  const at = new Date(Date.parse(completed_at) + 345 * 60_000).toISOString();
  const there = (...words: string[]) => collect(start('agent', words, { TZ: 'Asia/Kathmandu' }));

  expect((await there('explain', id)).out).toContain(`ended ${at.slice(11, 16)} `);
  expect((await there('show', id)).out).toContain(
    `completed  ${at.slice(0, 10)} ${at.slice(11, 19)} `,
  );
});
