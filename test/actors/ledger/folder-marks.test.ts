import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openDatabase } from '../../../src/actors/store/database.ts';
import { aTask } from '../../contracts/tracker.ts';
import { gitIn } from '../../support/git.ts';
import { embeddedAt, ledgerAt } from '../../support/ledger.ts';
import { temporaryFolder } from '../../support/temporary.ts';

/** What happens to the folder of `.beads/issues.jsonl` while the store stays as it is. */

const person = ['-c', 'user.name=Amy', '-c', 'user.email=amy@localhost'];

const openProject = async () => {
  const [root, stateDir] = [join(temporaryFolder(), 'app'), temporaryFolder()];
  mkdirSync(root);
  gitIn(root, 'init', '--quiet', '--initial-branch=main');
  const open = () => {
    const db = openDatabase({ file: join(stateDir, 'journal.db') });
    const ledger = ledgerAt(root, db);
    const { exchange } = ledger;
    const tracker = embeddedAt(root, {}, ledger);
    const titles = async () => (await tracker.list()).map(({ title }) => title).toSorted();
    const create = async (title: string): Promise<void> => {
      await tracker.create(aTask({ title }));
      await exchange.flush();
    };
    return { titles, create, save: exchange.flush };
  };
  const beads = join(root, '.beads');
  const file = join(beads, 'issues.jsonl');
  const opened = open();
  await opened.create('old');
  gitIn(root, 'add', '-A');
  gitIn(root, ...person, 'commit', '--quiet', '-m', 'tasks');
  const lines = (): number => readFileSync(file, 'utf8').trimEnd().split('\n').length;
  return { ...opened, open, root, beads, file, lines };
};
type Opened = Awaited<ReturnType<typeof openProject>>;

const replaceByClone = ({ root }: Opened): void => {
  renameSync(root, `${root}.before`);
  gitIn(join(root, '..'), 'clone', '--quiet', `${root}.before`, 'app');
};
const takeAgainFromGit = ({ root, beads }: Opened): void => {
  rmSync(beads, { recursive: true });
  gitIn(root, 'checkout', '--quiet', '--', '.beads');
};
const putBackup = ({ root }: Opened): void => {
  // As tar and rsync do; cpSync alone cannot replace read-only files under Node 24.
  execFileSync('cp', ['-af', `${root}.backup/.`, root]);
};

for (const [what, replace] of [
  ['a new clone in the place of the project', replaceByClone],
  ['a folder that git made again', takeAgainFromGit],
  ['a backup that was put over the folder', putBackup],
] as const)
  for (const isRunning of [true, false])
    test(`${what} removes no task (${isRunning ? 'by the server that runs' : 'by the next server'})`, async () => {
      const project = await openProject();
      cpSync(project.root, `${project.root}.backup`, { recursive: true });
      await project.create('new');

      replace(project);
      const later = isRunning ? project : project.open();
      const found = await later.titles();
      await later.save();

      expect(found).toEqual(['new', 'old']);
      expect(project.lines()).toBe(2);
    });

test('a new clone is known when the server has taken its file: a line that is removed later removes a task', async () => {
  const project = await openProject();
  await project.create('new');
  replaceByClone(project);
  await project.titles();
  await project.save();
  const [first = ''] = readFileSync(project.file, 'utf8').split('\n');
  writeFileSync(project.file, `${first}\n`);

  expect(await project.titles()).toHaveLength(1);
});

test('git shows no mark and takes none: stash, clean and checkout leave the folder known', async () => {
  const project = await openProject();
  await project.create('new');
  const { root, titles } = project;
  expect(gitIn(root, 'status', '--porcelain', '--untracked-files=all')).toBe(
    ' M .beads/issues.jsonl',
  );

  gitIn(root, ...person, 'stash', '--quiet', '--include-untracked');
  gitIn(root, 'clean', '--quiet', '--force', '-d');
  expect(await titles()).toEqual(['old']);
  gitIn(root, 'stash', 'pop', '--quiet');

  expect(await titles()).toEqual(['new', 'old']);
  expect(readdirSync(join(project.beads, '.exchange'))).toEqual(['.gitignore']);
});

test('two stores that share a folder know it both', async () => {
  const one = await openProject();
  const other = embeddedAt(one.root);
  for (let round = 0; round < 5; round += 1) {
    await one.create(`task ${round}`);
    expect(await other.list()).toHaveLength(round + 2);
  }
  const [first = ''] = readFileSync(one.file, 'utf8').split('\n');
  writeFileSync(one.file, `${first}\n`);

  expect(await other.list()).toHaveLength(1);
  expect(await one.titles()).toHaveLength(1);
});

test('a link in the place of the marks is not followed, and named', async () => {
  const project = await openProject();
  const elsewhere = temporaryFolder();
  rmSync(join(project.beads, '.exchange'), { recursive: true });
  symlinkSync(elsewhere, join(project.beads, '.exchange'));

  await expect(project.create('new')).rejects.toThrow('.exchange is a symbolic link');

  expect(await project.titles()).toEqual(['new', 'old']);
  expect(existsSync(join(elsewhere, '.gitignore'))).toBe(false);
});
