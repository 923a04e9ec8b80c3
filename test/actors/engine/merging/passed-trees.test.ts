import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createPassedTrees } from '../../../../src/actors/engine/merging/prove-train.ts';
import { temporaryFolder } from '../../../support/temporary.ts';

const at = Date.parse('2026-01-02T03:04:05Z');
const evidence = { tested_at: new Date(at).toISOString(), tested_seconds: 1.5 };
const passed = { tree: 'a'.repeat(40), commands: ['npm test'], setup: ['npm ci'] };
const newFile = (): string => join(temporaryFolder(), 'passed-trees.json');

test('another start knows what passed, with exactly these commands and this setup, for a day', async () => {
  const file = newFile();
  await createPassedTrees(file, () => at).keep(passed, evidence);
  let now = at;
  const again = createPassedTrees(file, () => now);

  expect(again.find(passed)).toEqual(evidence);
  expect(again.find({ ...passed, tree: 'b'.repeat(40) })).toBeUndefined();
  expect(again.find({ ...passed, commands: ['npm test', 'npm run lint'] })).toBeUndefined();
  expect(again.find({ ...passed, setup: [] })).toBeUndefined();
  now += 25 * 3_600_000;
  expect(again.find(passed)).toBeUndefined();
});

test('the oldest go, and a broken file or one that cannot be written costs a test only', async () => {
  const file = newFile();
  const trees = createPassedTrees(file, () => at);
  await Promise.all(
    Array.from({ length: 501 }, (_, tree) => trees.keep({ ...passed, tree: `${tree}` }, evidence)),
  );
  const again = createPassedTrees(file, () => at);
  expect(again.find({ ...passed, tree: '0' })).toBeUndefined();
  expect(again.find({ ...passed, tree: '1' })).toEqual(evidence);

  writeFileSync(file, '[["half');
  expect(createPassedTrees(file, () => at).find(passed)).toBeUndefined();
  const nowhere = createPassedTrees(join(file, 'below'), () => at);
  await nowhere.keep(passed, evidence);
  expect(nowhere.find(passed)).toEqual(evidence);
});
