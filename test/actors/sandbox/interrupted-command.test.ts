import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { createSharedFolders } from '../../../src/actors/sandbox/shared-folder.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const put = (root: string, files: Readonly<Record<string, string>>): void => {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
};

const mine = { '.git/config': 'mine', 'src/a.txt': 'mine', 'lib/.envrc': 'mine' };

/**
 * A folder in which a command has just made a protected file, when its server ended. `next` is what
 * the next server has.
 */
const interrupted = async (
  made: Readonly<Record<string, string>> = { '.vscode/tasks.json': 'evil' },
) => {
  const folder = temporaryFolder();
  const [root, state] = [join(folder, 'project'), join(folder, 'state')];
  const at = { quarantine: join(state, 'quarantine'), records: join(state, 'commands') };
  put(root, mine);
  expect(await createSharedFolders(at).guard(root, 'command', 'x/bd-a#1')).toHaveProperty(
    'readOnly',
  );
  put(root, made);
  const record = join(at.records, 'command.json');
  const next = () => createSharedFolders(at);
  return { ...at, root, record, next };
};

const isThere = (root: string, path: string): boolean => existsSync(join(root, path));
const expectMine = (root: string): void => {
  for (const [path, text] of Object.entries(mine))
    expect(readFileSync(join(root, path), 'utf8')).toBe(text);
};

test('files that it made are moved away at the start, and the next command in the folder says so', async () => {
  const { root, records, next } = await interrupted();
  const folders = next();

  const found = await folders.settleInterrupted();
  const guard = await folders.guard(root, 'second');
  const told = 'refusal' in guard ? guard : await guard.settle();

  expect(found).toMatchObject([{ root, attempt: 'x/bd-a#1', moved: ['.vscode'], left: [] }]);
  expect(told).toMatchObject({ moved: ['.vscode'], left: [] });
  expect(isThere(root, '.vscode')).toBe(false);
  expectMine(root);
  expect(readdirSync(records)).toEqual([]);
  expect(await next().settleInterrupted()).toEqual([]);
});

test('a process of the command that outlived the server is ended before anything is moved', async () => {
  const { root, next } = await interrupted();
  const script = 'trap "mkdir lib/.vscode; exit 0" TERM; echo ready; while :; do sleep 0.01; done';
  const process = execa('/bin/sh', ['-c', script], {
    ...{ cwd: root, env: { ATS_COMMAND: 'command' }, reject: false },
  });
  await new Promise((resolve) => process.stdout.once('data', resolve));

  const [found] = await next().settleInterrupted();

  expect(found?.moved.toSorted()).toEqual(['.vscode', 'lib/.vscode']);
  expect((await process).exitCode).toBe(0);
});

test('a command that was settled leaves nothing for the next start', async () => {
  const { root, next } = await interrupted({});
  const folders = next();
  await folders.settleInterrupted();
  const guard = await folders.guard(root, 'second');
  if (!('refusal' in guard)) await guard.settle();
  put(root, { '.idea/x': 'mine' });

  expect(await next().settleInterrupted()).toEqual([]);
  expect(isThere(root, '.idea/x')).toBe(true);
});

test('only files that could not be moved away are remembered over restarts', async () => {
  const { root, quarantine, next } = await interrupted();
  writeFileSync(quarantine, '');
  await next().settleInterrupted();
  put(root, { '.idea/x': 'mine' });
  const second = next();

  const [found] = await second.settleInterrupted();

  expect(found?.left).toHaveLength(1);
  expect(await second.guard(root, 'second')).toMatchObject({
    refusal: expect.stringMatching(/could not be moved away.*no command runs there/),
  });
  rmSync(quarantine);
  expect(await next().settleInterrupted()).toMatchObject([{ moved: ['.vscode'], left: [] }]);
  expect(isThere(root, '.idea/x')).toBe(true);
});

/** As after a restart of the machine that gave the file system another device number. */
const onOtherDevice = (record: string, change = (id: string): string => id): void => {
  const text = readFileSync(record, 'utf8');
  const { dev } = lstatSync(record);
  const ids = new RegExp(`"${dev}:(\\d+)`, 'g');
  writeFileSync(
    record,
    text.replace(ids, (_, inode) => `"${dev + 1}:${change(inode)}`),
  );
};

test('a device number that changed does not make files of the user look new', async () => {
  const { root, record, next } = await interrupted({ 'lib/.vscode/tasks.json': 'evil' });
  onOtherDevice(record);

  expect(await next().settleInterrupted()).toMatchObject([{ moved: ['lib/.vscode'], left: [] }]);
  expectMine(root);
});

test('where all files have other numbers nothing is moved, and no command runs until a person has looked', async () => {
  const { root, record, next } = await interrupted();
  const { ino } = lstatSync(root);
  onOtherDevice(record, (inode) => (inode === String(ino) ? inode : `9${inode}`));
  const folders = next();

  expect(await folders.settleInterrupted()).toMatchObject([{ root, moved: [] }]);
  expect(await folders.guard(root, 'second')).toMatchObject({
    refusal: expect.stringContaining(record),
  });
  expectMine(root);
  rmSync(record);
  expect(await folders.guard(root, 'third')).toHaveProperty('readOnly');
});

test('a record that cannot be read lets no command run', async () => {
  const { root, record, next } = await interrupted();
  writeFileSync(record, '{}');
  const folders = next();

  expect(await folders.settleInterrupted()).toMatchObject([{ root: null, moved: [] }]);
  expect(await folders.guard(root, 'second')).toHaveProperty('refusal');
});

test('in another folder at the same path nothing is moved', async () => {
  const { root, records, next } = await interrupted();
  renameSync(root, `${root}-old`);
  put(root, { ...mine, '.vscode/tasks.json': 'mine' });

  expect(await next().settleInterrupted()).toEqual([]);
  expect(isThere(root, '.vscode/tasks.json')).toBe(true);
  expect(readdirSync(records)).toEqual([]);
});

test('no command runs where what was there before cannot be written down', async () => {
  const { root, records, next } = await interrupted({});
  rmSync(records, { recursive: true });
  writeFileSync(records, '');

  expect(await next().guard(root, 'second')).toMatchObject({
    refusal: expect.stringContaining('cannot be written'),
  });
});
