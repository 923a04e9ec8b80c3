import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { deflateSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { attempt, branch, key, keyed, openCommon } from '../support/common-repository.ts';
import { commitIn, gitIn } from '../support/git.ts';
import { temporaryFolder } from '../support/temporary.ts';

const slow = { tags: ['slow'], timeout: 30_000 };

/** Work of server one as a step left it, and the commit that says so. */
const openKept = async () => {
  const opened = await openCommon('folder');
  const { root } = await opened.one.workspace.open(attempt);
  writeFileSync(join(root, 'a.txt'), 'changed\n');
  await opened.one.travel.keep(keyed, 'act:1:a');
  const message = gitIn(opened.bare, 'log', '-1', '--format=%B', branch);
  /** Makes a commit with these files and this message, and moves the branch to it. */
  const forge = (files: Readonly<Record<string, string>>, text: string): void => {
    for (const [name, content] of Object.entries(files)) commitIn(opened.project, name, content);
    gitIn(opened.project, 'commit', '--quiet', '--amend', '--allow-empty', '-m', text);
    gitIn(opened.project, 'push', '--quiet', '--force', opened.bare, `HEAD:refs/heads/${branch}`);
  };
  return { ...opened, message, forge };
};
describe('somebody who can write to the repository, and has no key,', slow, () => {
  const refusal = `the branch ${branch} of the common repository does not hold what a server wrote there`;

  test.each([
    ['a record of his own', () => '{"step":null,"record":{}}'],
    ['no JSON', () => '{ no JSON'],
    ['a record with another head', (text: string) => text.replace(/"head":"\w+"/, '"head":null')],
    [
      'withheld changes that are gone',
      (text: string) => text.replace('"withheld":[]', '"withheld":[1]'),
    ],
    ['a proof of zeros', (text: string) => text.replace(/[0-9a-f]{64} /, `${'0'.repeat(64)} `)],
  ])('is refused by name with %s', async (_, change) => {
    const { one, two, message, forge } = await openKept();
    forge({ 'evil.txt': 'x' }, change(message));

    await expect(two.travel.take(attempt, key)).rejects.toThrow(refusal);
    await expect(two.travel.takeWork([keyed])).rejects.toThrow(refusal);
    await expect(one.travel.keep(keyed, 'act:2:b')).rejects.toThrow('another server goes on');
    await expect(one.travel.keep(keyed, 'act:2:b')).rejects.toThrow(refusal);
  });

  test('gets no file into a folder with the words of a server', async () => {
    const { two, message, forge } = await openKept();
    forge({ 'a.txt': 'evil\n', 'evil.txt': 'x' }, message);

    await two.travel.take(attempt, key).catch(() => null);
    const { root } = await two.workspace.open(attempt);
    expect(existsSync(join(root, 'evil.txt'))).toBe(false);
    expect(readFileSync(join(root, 'a.txt'), 'utf8')).not.toBe('evil\n');
  });
});

const unpack = (bare: string): void => {
  const packs = join(bare, 'objects', 'pack');
  const moved = temporaryFolder();
  for (const name of readdirSync(packs)) {
    renameSync(join(packs, name), join(moved, name));
    if (name.endsWith('.pack'))
      execFileSync('git', ['unpack-objects', '-q'], {
        cwd: bare,
        input: readFileSync(join(moved, name)),
      });
  }
};
const objectFile = (bare: string, name: string): string =>
  join(bare, 'objects', name.slice(0, 2), name.slice(2));

describe('an object of the repository', slow, () => {
  test.each([
    [
      'with the content of another one',
      (file: string) => writeFileSync(file, deflateSync('blob 5\0evil\n')),
    ],
    ['that is cut', (file: string) => truncateSync(file, 12)],
    ['that is gone', (file: string) => rmSync(file)],
    [
      'with more memory than there is',
      (file: string) => writeFileSync(file, deflateSync('blob 99999999999\0evil')),
    ],
    [
      'that is a pipe',
      (file: string) => {
        rmSync(file);
        execFileSync('mkfifo', [file]);
      },
    ],
    [
      'that is a link',
      (file: string) => {
        renameSync(file, `${file}.x`);
        symlinkSync(`${file}.x`, file);
      },
    ],
  ])('%s is refused, and nothing of it is taken', async (_, change) => {
    const { bare, two } = await openKept();
    unpack(bare);
    const blob = gitIn(bare, 'rev-parse', `${branch}:a.txt`);
    const file = objectFile(bare, blob);
    chmodSync(file, 0o644);
    change(file);

    await expect(two.travel.take(attempt, key)).rejects.toThrow(
      /the work cannot be taken|not a plain file/,
    );
    expect(() => gitIn(two.root, 'cat-file', '-e', blob)).toThrow();
    expect(gitIn(two.root, 'fsck', '--no-dangling')).toBe('');
  });

  test('that is the commit of a server and is not what its name says is refused', async () => {
    const { bare, project, two, message } = await openKept();
    unpack(bare);
    const tip = gitIn(bare, 'rev-parse', branch);
    const text = gitIn(bare, 'cat-file', 'commit', tip).replace(
      /^tree .*/,
      `tree ${gitIn(project, 'rev-parse', 'main^{tree}')}`,
    );
    const file = objectFile(bare, tip);
    chmodSync(file, 0o644);
    writeFileSync(file, deflateSync(`commit ${text.length + 1}\0${text}\n`));

    expect(text).toContain(message.trimEnd());
    await expect(two.travel.take(attempt, key)).rejects.toThrow('is not what its name says');
  });
});

describe('a name in the repository', slow, () => {
  const pipe = (path: string): void => {
    rmSync(path, { recursive: true, force: true });
    mkdirSync(dirname(path), { recursive: true });
    execFileSync('mkfifo', [path]);
  };
  const ofBranch = `refs/heads/${branch}`;
  test.each([
    ['the branch is a pipe', (bare: string) => pipe(join(bare, ofBranch))],
    ['a branch of a person is a pipe', (bare: string) => pipe(join(bare, 'refs/heads/topic/x'))],
    ['packed-refs is a pipe', (bare: string) => pipe(join(bare, 'packed-refs'))],
    ['HEAD is a pipe', (bare: string) => pipe(join(bare, 'HEAD'))],
    ['the configuration is a pipe', (bare: string) => pipe(join(bare, 'config'))],
    [
      'the branches of agents are a link',
      (bare: string) => {
        const elsewhere = join(temporaryFolder(), 'agent');
        renameSync(join(bare, 'refs/heads/agent'), elsewhere);
        symlinkSync(elsewhere, join(bare, 'refs/heads/agent'));
      },
    ],
    [
      'objects are a link',
      (bare: string) => {
        const elsewhere = join(temporaryFolder(), 'objects');
        renameSync(join(bare, 'objects'), elsewhere);
        symlinkSync(elsewhere, join(bare, 'objects'));
      },
    ],
    ['the branch is huge', (bare: string) => truncateSync(join(bare, ofBranch), 2 ** 36)],
    ['packed-refs is huge', (bare: string) => truncateSync(join(bare, 'packed-refs'), 2 ** 36)],
    [
      'the branch is another one',
      (bare: string) => writeFileSync(join(bare, ofBranch), 'ref: refs/heads/main\n'),
    ],
    [
      'objects are borrowed',
      (bare: string) => writeFileSync(join(bare, 'objects/info/alternates'), '/etc\n'),
    ],
  ])('is refused, whoever waits for it: %s', async (_, change) => {
    const { bare, one, two } = await openKept();
    if (existsSync(join(bare, 'packed-refs')) === false)
      writeFileSync(join(bare, 'packed-refs'), '');
    change(bare);

    const why = /not a plain file|too large|names no commit|no bare repository|borrows objects/;
    const { root } = await one.workspace.open(attempt);
    writeFileSync(join(root, 'a.txt'), 'again\n');
    await expect(one.travel.keep(keyed, 'act:2:b')).rejects.toThrow(why);
    const taken = await two.travel.take(attempt, key).catch((error: Error) => error.message);
    if (typeof taken === 'string') expect(taken).toMatch(why);
    else expect(taken).toMatchObject({ has: 'step', step: 'act:1:a' });
  });
});
