import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { registerHandler, unregisterHandler } from '../../../src/cli/handler/register.ts';
import { desktopEntry } from '../../../src/cli/handler/register-linux.ts';
import { entryPath, linuxUser, listPath } from './linux.ts';

const theirs =
  '[Default Applications]\ntext/html=firefox.desktop\nx-scheme-handler/agent=other.desktop\n';
const ours = '[Default Applications]\nx-scheme-handler/agent=agent-task-server.desktop;\n';

test('registering writes the entry and makes it the default', async () => {
  const { environment, text, home } = linuxUser();

  expect(await registerHandler(environment)).toEqual({
    status: 'registered',
    replaced: null,
    line: 'registered: agent:// links now open here',
  });
  expect(text(entryPath)).toBe(desktopEntry(environment));
  expect(text(listPath)).toBe(ours);
  expect(statSync(join(home, entryPath)).mode & 0o777).toBe(0o644 & ~process.umask());
});

test('without XDG variables, or with relative ones, the files are in the home folder', async () => {
  const { environment, text } = linuxUser();
  const env = {
    DISPLAY: ':0',
    XDG_CONFIG_HOME: 'relative',
    XDG_DATA_DIRS: '/nowhere',
    XDG_CONFIG_DIRS: '/nowhere',
  };

  expect((await registerHandler({ ...environment, env })).status).toBe('registered');

  expect(text('.local/share/applications/agent-task-server.desktop')).not.toBeNull();
  expect(text('.config/mimeapps.list')).toBe(ours);
});

test('registering again writes nothing', async () => {
  const { environment, home } = linuxUser();
  const times = () =>
    [entryPath, listPath].map((path) => {
      const { mtimeNs, ctimeNs, ino } = statSync(join(home, path), { bigint: true });
      return { mtimeNs, ctimeNs, ino };
    });
  await registerHandler(environment);
  const before = times();

  expect((await registerHandler(environment)).status).toBe('already_registered');

  expect(times()).toEqual(before);
});

test('an entry of ours that points elsewhere is updated', async () => {
  const { environment, text } = linuxUser();
  await registerHandler(environment);

  expect(await registerHandler({ ...environment, script: '/new/agent.js' })).toEqual({
    status: 'updated',
    line: 'updated: agent:// links now open with /new/agent.js',
  });
  expect(text(entryPath)).toContain('"/new/agent.js"');
});

test('an entry that was deleted is registered again', async () => {
  const { environment, text, home } = linuxUser();
  await registerHandler(environment);
  rmSync(join(home, entryPath));

  expect((await registerHandler(environment)).status).toBe('registered');
  expect(text(entryPath)).toBe(desktopEntry(environment));
});

test("another program's default is untouched without force", async () => {
  const { environment, put, text } = linuxUser();
  put(listPath, theirs);

  expect(await registerHandler(environment)).toEqual({
    status: 'taken',
    by: 'other.desktop',
    line: 'not registered: other.desktop opens agent:// links; agent register-handler --force replaces it',
  });
  expect(text(listPath)).toBe(theirs);
  expect(text(entryPath)).toBeNull();
});

test("another program's default is replaced with force, and is back after unregistering", async () => {
  const { environment, put, text } = linuxUser();
  put(listPath, theirs);

  expect(await registerHandler({ ...environment, force: true })).toMatchObject({
    replaced: 'other.desktop',
  });
  expect(text(listPath)).toBe(theirs.replace('=other', '=agent-task-server.desktop;other'));
  expect((await registerHandler(environment)).status).toBe('already_registered');
  expect((await unregisterHandler(environment)).status).toBe('removed');
  expect(text(listPath)).toBe(theirs);
  expect(text(entryPath)).toBeNull();
});

test.each([
  ['config/gnome-mimeapps.list', '[Default Applications]'],
  ['system-config/mimeapps.list', '[Default Applications]'],
  ['data/applications/mimeapps.list', '[Default Applications]'],
  ['system-data/applications/mimeapps.list', '[Default Applications]'],
  ['system-data/applications/mimeinfo.cache', '[MIME Cache]'],
])('a program that opens the links because of %s is not replaced', async (path, section) => {
  const { environment, put, text } = linuxUser();
  const env = { ...environment.env, XDG_CURRENT_DESKTOP: 'ubuntu:GNOME' };
  put(path, `${section}\nx-scheme-handler/agent=other.desktop;\n`);

  expect(await registerHandler({ ...environment, env })).toMatchObject({
    status: 'taken',
    by: 'other.desktop',
  });
  expect(text(listPath)).toBeNull();
});

test('with force, a list that takes precedence over ours is named', async () => {
  const { environment, put, home } = linuxUser();
  const env = { ...environment.env, XDG_CURRENT_DESKTOP: 'GNOME' };
  put('config/gnome-mimeapps.list', theirs);

  const { status, line } = await registerHandler({ ...environment, env, force: true });

  expect(status).toBe('failed');
  expect(line).toContain(
    `${home}/config/gnome-mimeapps.list names other.desktop and takes precedence`,
  );
});

test.each([
  [{ SUDO_UID: '1000', SUDO_USER: 'me' }, 0],
  [{ SUDO_UID: '1000' }, 1000],
  [{ SUDO_USER: 'me' }, 0],
])('with %j and uid %i both are refused', async (sudo, uid) => {
  const { environment, text, put } = linuxUser();
  put(listPath, ours);
  const asRoot = { ...environment, env: { ...environment.env, ...sudo }, uid, force: true };

  expect((await registerHandler(asRoot)).status).toBe('refused');
  expect((await unregisterHandler(asRoot)).status).toBe('refused');
  expect(text(entryPath)).toBeNull();
  expect(text(listPath)).toBe(ours);
});

test('without a desktop nothing is registered, but an existing entry can be removed', async () => {
  const { environment, text } = linuxUser();
  const { DISPLAY: _, ...env } = environment.env;

  expect(await registerHandler({ ...environment, env })).toEqual({
    status: 'skipped',
    line: 'not registered: this machine has no desktop (neither DISPLAY nor WAYLAND_DISPLAY is set)',
  });
  expect(text(entryPath)).toBeNull();
  expect(
    (await registerHandler({ ...environment, env: { ...env, WAYLAND_DISPLAY: 'wayland-0' } }))
      .status,
  ).toBe('registered');
  expect((await unregisterHandler({ ...environment, env })).status).toBe('removed');
});

test('unregistering removes our files and says so; a second time it has nothing to do', async () => {
  const { environment, home } = linuxUser();
  await registerHandler(environment);

  expect(await unregisterHandler(environment)).toEqual({
    status: 'removed',
    line: `removed: our default in ${join(home, listPath)} and ${join(home, entryPath)}`,
  });
  expect(readdirSync(join(home, 'config'))).toEqual([]);
  expect(readdirSync(join(home, 'data/applications'))).toEqual([]);
  expect(await unregisterHandler(environment)).toEqual({
    status: 'not_registered',
    line: 'nothing to remove: this program was not registered',
  });
});

test('a linked list stays a link and keeps its mode', async () => {
  const { environment, put, text, home } = linuxUser();
  put('dotfiles/mimeapps.list', '# mine\n');
  chmodSync(join(home, 'dotfiles/mimeapps.list'), 0o600);
  mkdirSync(join(home, 'config'));
  symlinkSync('../dotfiles/mimeapps.list', join(home, listPath));

  await registerHandler(environment);

  expect(readlinkSync(join(home, listPath))).toBe('../dotfiles/mimeapps.list');
  expect(text('dotfiles/mimeapps.list')).toBe(`# mine\n${ours}`);
  expect(statSync(join(home, listPath)).mode & 0o777).toBe(0o600);
});

test('a list that is not UTF-8 is left as it is', async () => {
  const { environment, put, home } = linuxUser();
  put(listPath, Buffer.from([0x23, 0xff, 0x0a]));

  expect((await registerHandler(environment)).status).toBe('failed');
  expect(statSync(join(home, listPath)).size).toBe(3);
});

test('an obstacle is reported in one line', async () => {
  const { environment, put, home } = linuxUser();
  put('data', 'a file where the folder should be');

  const { status, line } = await registerHandler(environment);

  expect(status).toBe('failed');
  expect(line).toMatch(/^not registered: E(EXIST|NOTDIR): .*/);
  expect(line).toContain(join(home, 'data'));
  expect(line).not.toContain('\n');
});

test.each([
  { node: 'node' },
  { script: 'agent.js' },
  { script: '/a\nTerminal=false' },
  { node: '/50%/node' },
  { node: '/a=b/node' },
])('%j cannot be registered', async (paths) => {
  const { environment, text } = linuxUser();

  expect((await registerHandler({ ...environment, ...paths })).status).toBe('failed');
  expect(text(entryPath)).toBeNull();
});
