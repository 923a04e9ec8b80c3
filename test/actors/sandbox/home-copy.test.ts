import { execFileSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createBubblewrap } from '../../../src/actors/sandbox/bubblewrap.ts';
import { createHomeCopies } from '../../../src/actors/sandbox/home-copy.ts';
import { forAssistant } from '../../../src/actors/sandbox/port.ts';
import { runSandboxed } from '../../../src/actors/sandbox/run-sandboxed.ts';
import { noSandbox, testUnless } from '../../support/needs.ts';
import { endOfFile, temporaryFolder } from '../../support/temporary.ts';

const homeWith = (files: readonly string[]): string => {
  const home = temporaryFolder();
  for (const file of files) {
    mkdirSync(dirname(join(home, file)), { recursive: true });
    writeFileSync(join(home, file), `the text of ${file}`);
  }
  return home;
};

const parent = join(temporaryFolder(endOfFile()), 'homes');
const copyHome = createHomeCopies(parent);

const copied = async (home: string, paths: readonly string[], never: readonly string[] = []) => {
  const { folder, remove } = await copyHome(home, { paths, never });
  onTestFinished(remove);
  return folder;
};

test('named files and folders are copied, nothing else; a path where nothing is gives nothing', async () => {
  const home = homeWith(['.pi/agent/settings.json', '.pi/big.log', '.netrc', '.toolrc', 'notes']);

  const folder = await copied(home, ['.pi/agent', '.toolrc', '.absent/file']);

  expect(readdirSync(folder).sort()).toEqual(['.pi', '.toolrc']);
  expect(readFileSync(join(folder, '.pi/agent/settings.json'), 'utf8')).toContain('settings.json');
  expect(existsSync(join(folder, '.pi/big.log'))).toBe(false);
  expect(lstatSync(folder).mode & 0o77).toBe(0);
});

test('keys of other programs come only when they are named', async () => {
  const home = homeWith(['.config/gh/hosts.yml', '.config/tool/a', '.config/tool/.aws/key']);

  const folder = await copied(home, ['.config']);
  const named = await copied(home, ['.config/gh', '.config/tool/.aws']);

  expect(readdirSync(join(folder, '.config'))).toEqual(['tool']);
  expect(readdirSync(join(folder, '.config/tool'))).toEqual(['a']);
  expect(existsSync(join(named, '.config/gh/hosts.yml'))).toBe(true);
  expect(existsSync(join(named, '.config/tool/.aws/key'))).toBe(true);
});

test('files of the server are never copied', async () => {
  const home = homeWith(['.config/agent-task-server/keys.json', '.config/tool/a', '.config/token']);
  symlinkSync(join(home, '.config/agent-task-server'), join(home, '.tool'));
  const never = [join(home, '.config/token')];

  expect(readdirSync(join(await copied(home, ['.config'], never), '.config'))).toEqual(['tool']);
  for (const path of ['.config/agent-task-server', '.config/token', '.tool'])
    await expect(copied(home, [path], never)).rejects.toThrow(
      `sandbox.home_paths: ~/${path} belongs to this server`,
    );
  expect(readdirSync(parent)).toHaveLength(1);
});

test('a link is copied as a link; one that is named must stay in the home, and name no key', async () => {
  const outside = homeWith(['secret']);
  const home = homeWith(['.ssh/id', 'dotfiles/pi/settings.json', '.tool/a']);
  symlinkSync(outside, join(home, '.tool/out'));
  symlinkSync(join(home, '.ssh'), join(home, '.tool/keys'));
  for (const [name, target] of [
    ['.pi', join(home, 'dotfiles/pi')],
    ['.out', outside],
    ['.keys', join(home, '.ssh')],
  ] as const)
    symlinkSync(target, join(home, name));

  const folder = await copied(home, ['.tool', '.pi']);

  expect(readlinkSync(join(folder, '.tool/out'))).toBe(outside);
  expect(readlinkSync(join(folder, '.tool/keys'))).toBe(join(home, '.ssh'));
  expect(readdirSync(join(folder, '.pi'))).toEqual(['settings.json']);
  await expect(copied(home, ['.out'])).rejects.toThrow(/not below your home folder/);
  await expect(copied(home, ['.keys'])).rejects.toThrow(/name that path if an agent may read it/);
});

test('more than 64 MiB are refused, pipes are left out', async () => {
  const home = homeWith(['.tool/a', '.big/file']);
  execFileSync('mkfifo', [join(home, '.tool/pipe')]);
  truncateSync(join(home, '.big/file'), 65 * 1024 ** 2);

  expect(readdirSync(join(await copied(home, ['.tool']), '.tool'))).toEqual(['a']);
  await expect(copied(home, ['.big'])).rejects.toThrow(/more than 64 MiB or 10000 files/);
});

test('copies of a server that was killed are removed', async () => {
  const folder = join(temporaryFolder(), 'homes');
  mkdirSync(join(folder, 'home-left'), { recursive: true });

  const { remove } = await createHomeCopies(folder)(homeWith([]), { paths: [], never: [] });

  expect(readdirSync(folder)).not.toContain('home-left');
  remove();
});

testUnless(noSandbox)(
  'an assistant changes its copies, and they end with it; a refused copy refuses the run',
  async () => {
    const home = homeWith(['.tool/settings', '.ssh/id']);
    const homesFolder = join(temporaryFolder(), 'homes');
    const sandbox = createBubblewrap({ readPaths: [], network: false, homesFolder });
    const needs = { home, folders: [], files: [], makesOwnSandbox: false };
    const run = (paths: readonly string[]) =>
      runSandboxed(forAssistant(sandbox, { ...needs, copies: { paths, never: [] } }), {
        argv: [
          '/bin/bash',
          '-c',
          'cd ~; ls -A; cat .tool/settings; echo changed > .tool/new && mv .tool/new .tool/settings; cat .tool/settings',
        ],
        root: temporaryFolder(),
        readable: [],
        env: { PATH: process.env['PATH'] ?? '', HOME: home },
        network: false,
        timeoutMs: 10_000,
        signal: new AbortController().signal,
        headBytes: 10_000,
        tailBytes: 10_000,
      });

    expect(await run(['.tool'])).toMatchObject({
      output: '.tool\nthe text of .tool/settingschanged\n',
    });
    expect(readFileSync(join(home, '.tool/settings'), 'utf8')).toBe('the text of .tool/settings');
    expect(readdirSync(homesFolder)).toEqual([]);
    symlinkSync('/etc', join(home, '.etc'));
    expect(await run(['.etc'])).toEqual({
      refusal: expect.stringContaining('sandbox.home_paths: ~/.etc leads to /etc'),
    });
  },
);
