import {
  chmodSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createKeptReports } from '../../../src/actors/engine/servers/kept-reports.ts';
import type { AttemptInput, TaskId } from '../../../src/machines/task.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const paths = ['coverage/summary.json', 'lcov.info'];
const attempt: AttemptInput = {
  taskId: 'bd-a1' as TaskId,
  attempt: 1,
  role: 'tester',
  options: {},
};
const planted = '99 %';
const honest = '10 %';

const scene = () => {
  const root = temporaryFolder();
  mkdirSync(join(root, 'coverage'));
  const reports = createKeptReports({ folder: temporaryFolder(), pathsOf: async () => paths });
  const at = (path: string): string => join(root, path);
  return {
    root,
    at,
    summary: at('coverage/summary.json'),
    plant: (path: string): void => writeFileSync(at(path), planted),
    /** Runs one verify command; resolves with what is kept of each path. */
    verify: async (command: () => void) => {
      const keeping = await reports.watch(attempt, root);
      await keeping(async () => command());
      return Promise.all(paths.map((path) => reports.read(attempt.taskId, 1, path)));
    },
  };
};

const inTwoDays = new Date(Date.now() + 2 * 86_400_000);

test('a report that was there before does not count, whatever its time is', async () => {
  const { at, summary, plant, verify } = scene();
  plant('coverage/summary.json');
  utimesSync(summary, inTwoDays, inTwoDays);

  const kept = await verify(() => writeFileSync(at('lcov.info'), honest));

  expect(kept).toEqual([null, honest]);
});

test('a report that was there before does not count when a command changes only its mode', async () => {
  const { summary, plant, verify } = scene();
  plant('coverage/summary.json');

  expect(await verify(() => chmodSync(summary, 0o666))).toEqual([null, null]);
});

test('a link does not lead to a report from before, or out of the folder', async () => {
  const { at, summary, plant, verify } = scene();
  const outside = join(temporaryFolder(), 'lcov.info');
  plant('coverage/other.json');
  symlinkSync('other.json', summary);
  symlinkSync(outside, at('lcov.info'));

  expect(await verify(() => writeFileSync(outside, planted))).toEqual([null, null]);
});

test.each([
  ['is written anew', (file: string) => writeFileSync(file, planted), planted],
  ['is written with other content', (file: string) => writeFileSync(file, honest), honest],
  [
    'is replaced together with its folder',
    (file: string) => {
      rmSync(join(file, '..'), { recursive: true });
      mkdirSync(join(file, '..'));
      writeFileSync(file, honest);
    },
    honest,
  ],
  [
    'is replaced by a file of the same time',
    (file: string) => {
      writeFileSync(`${file}.new`, honest);
      utimesSync(`${file}.new`, inTwoDays, inTwoDays);
      renameSync(`${file}.new`, file);
    },
    honest,
  ],
])('a report from before counts when it %s by a command', async (_, write, says) => {
  const { summary, plant, verify } = scene();
  plant('coverage/summary.json');
  utimesSync(summary, inTwoDays, inTwoDays);

  expect(await verify(() => write(summary))).toEqual([says, null]);
});

test('a new verification forgets the reports of the one before', async () => {
  const { summary, verify } = scene();
  await verify(() => writeFileSync(summary, honest));

  expect(await verify(() => {})).toEqual([null, null]);
});
