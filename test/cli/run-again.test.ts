import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';

const turn = (tool: string, args: object) => ({
  say: '',
  calls: [{ tool, arguments: args }],
});
const finish = turn('finish', { status: 'done', summary: 'done' });

test('a second run names the dependency that a task waits for, not one that is complete', {
  tags: ['slow'],
}, async () => {
  const project = openProject({ api: { backend: 'scripted', script: 'script.json' } });
  const ask = turn('ask', { question: 'red or blue?' });
  const scripts = [{ title: 'asks', turns: [ask, finish] }, { turns: [finish] }];
  writeFileSync(join(project.configFile, '..', 'script.json'), JSON.stringify({ scripts }));
  const create = async (...words: readonly string[]): Promise<string> =>
    (await project.agent('create', ...words, '--role', 'engineer')).out.trim();
  const ready = await create('ready');
  const asks = await create('asks');
  await create('last', '--deps', `${ready},${asks}`);
  const show = async (id: string) => JSON.parse((await project.agent('show', id, '--json')).out);

  await project.agent('run', '--async');
  while ((await show(ready)).status !== 'complete') await delay(100);
  while ((await show(asks)).awaiting === undefined) await delay(100);
  const again = project.onTerminal('run');
  await delay(2_500);
  await project.agent('respond', asks, 'red');

  const { code, err } = await again;
  expect(err).not.toContain(`waits for ${ready}, which`);
  expect(err).toContain(`waits for ${asks}`);
  expect(err).toContain('asks: red or blue?');
  expect(code).toBe(0);
});

test('a second run does not call its own time that of every attempt', async () => {
  const project = openProject();
  const id = (await project.agent('create', 'x')).out.trim();
  await project.agent('engineer', id);
  await project.agent('reopen', id);

  const again = await project.agent('engineer', id);

  expect(again.out).toMatch(new RegExp(`^${id} complete in [^()]+$`, 'm'));
});
