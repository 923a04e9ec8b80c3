import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { execa } from 'execa';
import { expect, onTestFinished, test } from 'vitest';
import { childEnvironment } from '../../../src/actors/process/run-command.ts';
import { createBubblewrap } from '../../../src/actors/sandbox/bubblewrap.ts';
import type { OwnGit } from '../../../src/actors/sandbox/port.ts';
import { runSandboxed } from '../../../src/actors/sandbox/run-sandboxed.ts';
import { createSharedFolders } from '../../../src/actors/sandbox/shared-folder.ts';
import { describeUnless, noSandbox, testUnless } from '../../support/needs.ts';
import { bash, finish, startSystem, untilStatus } from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const put = (root: string, files: Readonly<Record<string, string>>): void => {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
};

/** A project of the user, a folder beside it that agents must not see, and the state folder. */
const makeScene = (files: Readonly<Record<string, string>> = {}) => {
  const folder = temporaryFolder();
  const [root, outside, state] = ['project', 'outside', 'state'].map((name) =>
    join(folder, name),
  ) as [string, string, string];
  for (const each of [root, outside, state]) mkdirSync(each);
  put(root, { 'src/a.txt': 'as it was', ...files });
  return { root, outside, quarantine: join(state, 'quarantine'), records: join(state, 'commands') };
};

const sandboxIn = (at: { readonly quarantine: string; readonly records: string }) =>
  createBubblewrap({ readPaths: [], network: false, folders: createSharedFolders(at) });

const run = async (
  {
    root,
    ...state
  }: { readonly root: string; readonly quarantine: string; readonly records: string },
  script: string,
  git?: OwnGit,
  sandbox = sandboxIn(state),
) => {
  const result = await runSandboxed(sandbox, {
    argv: ['/bin/sh', '-c', script],
    root,
    readable: [],
    ...(git === undefined ? {} : { git }),
    env: childEnvironment(process.env),
    timeoutMs: 15_000,
    signal: new AbortController().signal,
    network: false,
    headBytes: 8_192,
    tailBytes: 8_192,
  });
  if ('refusal' in result) throw new Error(result.refusal);
  return result;
};

const indexOf = (folder: string | null): Readonly<Record<string, string>> =>
  JSON.parse(readFileSync(join(folder ?? '', 'index.json'), 'utf8')).moved;

describeUnless(noSandbox)('a protected path that a command makes', () => {
  test('is moved to a private folder outside the project, from every depth, with an index of its old places', async () => {
    const scene = makeScene();

    const result = await run(
      scene,
      'mkdir -p .claude a/b/.git; echo evil > .claude/x; echo evil > a/b/.git/config',
    );

    expect(result.quarantined.toSorted()).toEqual(['.claude', 'a/b/.git']);
    expect(result.quarantine?.startsWith(`${scene.quarantine}/`)).toBe(true);
    expect(existsSync(join(scene.root, '.claude'))).toBe(false);
    expect(readdirSync(join(scene.root, 'a/b'))).toEqual([]);
    const moved = indexOf(result.quarantine);
    const place = Object.keys(moved).find((name) => moved[name] === 'a/b/.git');
    expect(readFileSync(join(result.quarantine ?? '', place ?? '', 'config'), 'utf8')).toBe(
      'evil\n',
    );
    expect(
      [scene.quarantine, result.quarantine ?? ''].map((path) => statSync(path).mode & 0o777),
    ).toEqual([0o700, 0o700]);
  });

  test('is never moved through a link that the command made', async () => {
    const scene = makeScene();

    await run(
      scene,
      `ln -s ${scene.outside} .beads; ln -s ${scene.outside} quarantine; echo evil > .envrc`,
    );

    expect(readdirSync(scene.outside)).toEqual([]);
    expect(existsSync(join(scene.root, '.envrc'))).toBe(false);
  });

  test('is moved as a link where it is a link: nothing outside moves', async () => {
    const scene = makeScene();
    put(scene.outside, { 'workflows/ci.yml': 'mine', 'x/.vscode/tasks.json': 'mine' });

    const result = await run(
      scene,
      `ln -s ${scene.outside} .github; ln -s ${scene.outside}/x sub; ls .github || true`,
    );

    expect(result.quarantined).toEqual(['.github']);
    expect(lstatSync(join(result.quarantine ?? '', '1')).isSymbolicLink()).toBe(true);
    expect(readFileSync(join(scene.outside, 'workflows/ci.yml'), 'utf8')).toBe('mine');
    expect(readFileSync(join(scene.outside, 'x/.vscode/tasks.json'), 'utf8')).toBe('mine');
  });

  test('is copied where the state folder is on another file system', async () => {
    const folder = mkdtempSync('/dev/shm/agent-test-');
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const scene = makeScene();
    expect(statSync(folder).dev).not.toBe(statSync(scene.root).dev);

    const script = `mkdir -p .git/hooks; echo evil > .git/hooks/x; ln -s ${scene.outside} .git/link; mkfifo .git/pipe; chmod 500 .git`;
    const result = await run({ ...scene, quarantine: join(folder, 'quarantine') }, script);

    expect(result.quarantined).toEqual(['.git']);
    expect(existsSync(join(scene.root, '.git'))).toBe(false);
    expect(readdirSync(join(result.quarantine ?? '', '1')).toSorted()).toEqual(['hooks', 'link']);
    expect(readdirSync(scene.outside)).toEqual([]);
  });

  test('is found where the command made folders that cannot be listed or changed', async () => {
    const scene = makeScene();

    const result = await run(scene, 'mkdir -p a/.git b/.git; chmod 500 a; chmod 111 b');

    expect(result.quarantined.toSorted()).toEqual(['a/.git', 'b/.git']);
  });

  test('is found below a hundred folders, and in a folder that git takes for a repository', async () => {
    const scene = makeScene();
    const deep = Array.from({ length: 150 }, () => 'd').join('/');

    const result = await run(
      scene,
      `mkdir -p ${deep}/.git bare/objects bare/refs; touch bare/HEAD`,
    );

    expect(result.quarantined.toSorted()).toEqual(['bare/HEAD', deep.slice(0, 201)]);
    expect(existsSync(join(scene.root, deep))).toBe(false);
  });

  test('is found whatever bytes its name has', async () => {
    const scene = makeScene();

    const script = `mkdir .GIT; mkdir "$(printf 'a\\377')"; mkdir "$(printf 'a\\377')/.git"; mkdir "$(printf 'n\\nl')"; mkdir "$(printf 'n\\nl')/.mcp.json"`;
    const result = await run(scene, script);

    expect(result.quarantined.toSorted()).toEqual(['.GIT', 'a\ufffd/.git', 'n\nl/.mcp.json']);
  });
});

describeUnless(noSandbox)('an existing protected path', () => {
  const files = {
    '.git/HEAD': 'ref: refs/heads/main',
    '.git/config': 'mine',
    '.github/workflows/ci.yml': 'mine',
    'packages/a/.vscode/tasks.json': 'mine',
    'packages/a/.npmrc': 'mine',
    'lib/.git': 'gitdir: ../.git/modules/lib',
    'bare/HEAD': 'ref: refs/heads/main',
    'bare/objects/x': 'mine',
    'bare/refs/x': 'mine',
    'bare/config': 'mine',
    'editor/tasks.json': 'mine',
  };

  test.each([
    ['make settings of git that are not there', 'touch .git/commondir'],
    ['make settings of a worktree', 'echo x > .git/config.worktree'],
    ['make a module', 'mkdir .git/modules'],
    ['make a hook', 'mkdir .git/hooks'],
    ['commit', 'echo x > .git/refs'],
    ['move .git away', 'mv .git .git2'],
    ['change a workflow', 'echo x > .github/workflows/ci.yml'],
    ['change a file of an editor below', 'echo x > packages/a/.vscode/tasks.json'],
    ['replace one', 'rm packages/a/.npmrc'],
    ['point a submodule elsewhere', 'echo x > lib/.git'],
    ['change a repository without a working tree', 'echo x > bare/config'],
    ['change what a protected link leads to', 'echo x > editor/tasks.json'],
  ])('a command cannot %s', async (_what, script) => {
    const scene = makeScene(files);
    symlinkSync('editor', join(scene.root, '.zed'));

    const result = await run(scene, script);

    expect(result.exitCode).not.toBe(0);
    expect(result.quarantined).toEqual([]);
    for (const [path, text] of Object.entries(files))
      expect(readFileSync(join(scene.root, path), 'utf8')).toBe(text);
  });

  test('stays in its moved folder, and its replacement is moved away', async () => {
    const scene = makeScene(files);

    const result = await run(scene, 'mv packages/a packages/b; mkdir -p packages/a/.vscode');

    expect(result).toMatchObject({ exitCode: 0, quarantined: ['packages/a/.vscode'] });
    expect(readFileSync(join(scene.root, 'packages/b/.vscode/tasks.json'), 'utf8')).toBe('mine');
  });

  test("the user's link stays, and a changed link is moved away", async () => {
    const scene = makeScene(files);
    symlinkSync('editor', join(scene.root, '.zed'));
    symlinkSync('src', join(scene.root, '.idea'));

    const result = await run(scene, 'rm .idea; ln -s editor .idea');

    expect(result.quarantined).toEqual(['.idea']);
    expect(lstatSync(join(scene.root, '.zed')).isSymbolicLink()).toBe(true);
  });

  test('the target of a protected link is held like the link: through further links, and where nothing exists yet', async () => {
    const scene = makeScene({ ...files, 'tools/hooks/readme': 'mine' });
    for (const [target, link] of [
      ['a', '.zed'],
      ['editor', 'a'],
      ['cfg', '.claude'],
      ['tools/hooks', '.husky'],
    ] as const)
      symlinkSync(target, join(scene.root, link));

    const script =
      'mkdir cfg; echo x > cfg/settings.json; rm a; mkdir a; echo x > a/tasks.json; mv tools t2; mkdir -p tools/hooks; echo x > tools/hooks/pre-commit; ls';
    const result = await run(scene, script);
    await run(scene, 'echo x > editor/new.json');

    expect(result.quarantined.toSorted()).toEqual(['a', 'cfg', 'tools/hooks']);
    expect(readdirSync(join(scene.root, 't2/hooks'))).toEqual(['readme']);
    expect(['cfg', 'a', 'tools/hooks'].map((path) => existsSync(join(scene.root, path)))).toEqual([
      false,
      false,
      false,
    ]);
  });

  test('moving a protected link that a command made moves no folder of the user', async () => {
    const scene = makeScene(files);
    symlinkSync('a', join(scene.root, '.zed'));
    symlinkSync('editor', join(scene.root, 'a'));

    const result = await run(scene, 'ln -s src .vscode; ln -sfn src a');

    expect(result.quarantined.toSorted()).toEqual(['.vscode', 'a']);
    expect(readFileSync(join(scene.root, 'src/a.txt'), 'utf8')).toBe('as it was');
  });

  test('a folder of the user that cannot be listed stays as it is', async () => {
    const scene = makeScene(files);
    const closed = join(scene.root, 'closed');
    mkdirSync(closed);
    chmodSync(closed, 0o300);

    const result = await run(scene, 'echo x > src/a.txt');
    const { mode } = statSync(closed);
    // Node 24 removes no folder that it cannot list.
    chmodSync(closed, 0o700);

    expect(result).toMatchObject({ exitCode: 0, quarantined: [] });
    expect(mode & 0o777).toBe(0o300);
  });

  test("the second command's scan knows what the user made before it", async () => {
    const scene = makeScene(files);
    await run(scene, 'true');
    put(scene.root, { 'src/.envrc': 'mine' });

    const result = await run(scene, 'echo x > src/.envrc');

    expect([result.exitCode === 0, result.quarantined]).toEqual([false, []]);
    expect(readFileSync(join(scene.root, 'src/.envrc'), 'utf8')).toBe('mine');
  });
});

test('new folders beyond the scan limit are moved as a whole, and the project can be scanned again', async () => {
  const { root, ...state } = makeScene({ 'kept/b.txt': 'b' });
  const { guard } = createSharedFolders({ ...state, maxFolders: 50 });
  const before = await guard(root, 'first');
  for (let number = 0; number < 60; number += 1)
    mkdirSync(join(root, 'aaa', String(number)), { recursive: true });
  put(root, {
    'zzz/.envrc': 'evil',
    'kept/.envrc': 'evil',
    'kept/new/opencode.json': 'evil',
    'kept/mine.txt': 'mine',
  });

  const settled = 'refusal' in before ? null : await before.settle();

  expect(settled).toMatchObject({
    moved: expect.arrayContaining(['aaa', 'kept/.envrc']),
    left: [],
  });
  expect(readdirSync(join(root, 'kept')).filter((name) => name !== 'new')).toEqual([
    'b.txt',
    'mine.txt',
  ]);
  expect([
    existsSync(join(root, 'kept/new/opencode.json')),
    existsSync(join(root, 'zzz/.envrc')),
  ]).toEqual([false, false]);
  expect(await guard(root, 'second')).not.toHaveProperty('refusal');
});

test('near the scan limit all new folders are moved, however many', async () => {
  const { root, ...state } = makeScene();
  for (let number = 0; number < 47; number += 1)
    mkdirSync(join(root, 'kept', String(number)), { recursive: true });
  const { guard } = createSharedFolders({ ...state, maxFolders: 50 });
  const before = await guard(root, 'first');
  for (let number = 0; number < 60; number += 1)
    put(root, { [`z${number}/.vscode/tasks.json`]: 'evil' });

  const settled = 'refusal' in before ? null : await before.settle();

  expect(settled?.left).toEqual([]);
  expect(readdirSync(root).toSorted()).toEqual(['kept', 'src']);
  expect(await guard(root, 'second')).not.toHaveProperty('refusal');
});

describeUnless(noSandbox)('a faulty quarantine', () => {
  test('with old folders that cannot be removed by path still accepts new ones', async () => {
    const scene = makeScene();
    for (let number = 0; number < 120; number += 1)
      mkdirSync(join(scene.quarantine, String(number)), { recursive: true });
    const long = 'd'.repeat(200);
    const deep = `for i in $(seq 30); do mkdir ${long}; cd ${long}; done; chmod 500 .`;
    await Promise.all(
      ['1', '2'].map((name) =>
        execa('/bin/sh', ['-c', deep], { cwd: join(scene.quarantine, name) }),
      ),
    );
    for (const name of ['1', '2']) utimesSync(join(scene.quarantine, name), 0, 0);

    const result = await run(scene, 'mkdir -p .git .vscode; echo evil > .git/config');

    expect(result.quarantined.toSorted()).toEqual(['.git', '.vscode']);
    expect(readdirSync(scene.root)).toEqual(['.beads', 'src']);
    expect(readdirSync(scene.quarantine)).toHaveLength(100);
  });

  test('refuses further commands until a person has removed what is left', async () => {
    const scene = makeScene();
    writeFileSync(scene.quarantine, '');
    const sandbox = sandboxIn(scene);

    await expect(run(scene, 'mkdir .vscode', undefined, sandbox)).rejects.toThrow(
      /could not be moved away.*no command/,
    );
    put(scene.root, { '.idea/mine': 'mine' });
    await expect(run(scene, 'touch ran', undefined, sandbox)).rejects.toThrow(
      /no command runs there/,
    );
    rmSync(scene.quarantine);
    const result = await run(scene, 'mkdir .zed', undefined, sandbox);

    expect(result.quarantined).toEqual(['.vscode', '.zed']);
    expect(readdirSync(scene.root).toSorted()).toEqual(['.beads', '.idea', 'src']);
    expect((await run(scene, 'true', undefined, sandbox)).quarantined).toEqual([]);
  });

  test('fails the attempt, and the failure names what is left', async () => {
    const scene = makeScene();
    writeFileSync(scene.quarantine, '');
    const sandbox = sandboxIn(scene);
    const running = await startSystem({
      root: scene.root,
      sandbox,
      turns: [bash('mkdir .vscode'), finish()],
    });
    const { task_id: id } = await running.service.create({ description: 'make it' });
    await running.service.execute({ task: id, role: 'engineer', options: {} });

    expect((await untilStatus(running, id, 'complete', 'failed')).error).toMatchObject({
      code: 'tool_failed',
      message: expect.stringMatching(/could not be moved away/),
    });
  });
});

testUnless(noSandbox)(
  'in its own folder a command cannot create or change the tracker',
  async () => {
    const scene = makeScene();
    const git = { dir: join(scene.outside, 'git'), at: join(scene.root, '.git') };
    mkdirSync(git.dir);

    const result = await run(
      scene,
      'mkdir .beads; echo x > .beads/issues.jsonl; ln -s / .beads/x; mv .beads b',
      git,
    );

    expect(result.exitCode).not.toBe(0);
    expect(readdirSync(join(scene.root, '.beads'))).toEqual([]);
    expect(existsSync(join(scene.root, 'b'))).toBe(false);
  },
);
