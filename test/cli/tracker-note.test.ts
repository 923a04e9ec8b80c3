import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';
import { temporaryFolder } from '../support/temporary.ts';

const note = "the tracker 'bd' is not installed";
const withoutBd = () => ({ PATH: temporaryFolder() });

test('the first command that creates a task says once that bd is not installed', async () => {
  const { agentWith, root } = openProject();
  const agent = (...words: string[]) => agentWith(withoutBd(), ...words);

  const silent = [await agent('list'), await agent('completion', 'bash'), await agent('help')];
  const json = await agent('create', 'one', '--json');
  const first = await agent('create', 'two');
  const second = await agent('create', 'three');
  const doctor = await agent('doctor');

  for (const { err } of [...silent, json, second]) expect(err).not.toContain(note);
  expect(first.err).toContain(`${note}; the built-in one keeps the tasks`);
  expect(first.out).toMatch(/^bd-\w+\n$/);
  expect(doctor.err).toContain(note);
  mkdirSync(join(root, '.beads', 'dolt'));
  const kept = await agent('doctor');
  expect(kept.err).toContain(`${note}; it keeps the tasks (.beads/dolt)`);
  for (const { err } of [first, kept])
    for (const line of err.split('\n').filter((each) => each.includes(note)))
      expect(line.length).toBeLessThan(80);
});

test('a tracker that is not bd makes no note', async () => {
  const { agentWith, configFile } = openProject();
  writeFileSync(configFile, JSON.stringify({ tracker: { mode: 'embedded' } }));

  for (const words of [['create', 'one'], ['init'], ['doctor']])
    expect((await agentWith(withoutBd(), ...words)).err).not.toContain(note);
});
