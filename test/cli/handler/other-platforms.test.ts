import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { registerHandler, unregisterHandler } from '../../../src/cli/handler/register.ts';
import { appleScript, infoPlist, macosApp } from '../../../src/cli/handler/register-macos.ts';
import {
  registryCommandIn,
  windowsOpenCommand,
} from '../../../src/cli/handler/register-windows.ts';
import type { HandlerEnvironment } from '../../../src/cli/handler/registration.ts';
import { temporaryFolder } from '../../support/temporary.ts';

type Answer = (argv: readonly string[]) => { ok: boolean; detail: string };
const fine = { ok: true, detail: '' };

const record = (answer: Answer) => {
  const calls: (readonly string[])[] = [];
  const run: HandlerEnvironment['run'] = async (argv) => {
    calls.push(argv);
    return answer(argv);
  };
  return { calls, run };
};

test('the AppleScript quotes the paths and the link', () => {
  expect(appleScript({ node: '/n', script: '/a "b"\\c/agent.js' })).toBe(
    [
      'on open location theURL',
      '\tdo shell script quoted form of "/n" & " " & quoted form of "/a \\"b\\"\\\\c/agent.js" & " open-url -- " & quoted form of theURL',
      'end open location',
    ].join('\n'),
  );
});

test('the plist claims the scheme and escapes the recorded script', () => {
  const plist = infoPlist('a & "b" < c');

  expect(plist).toContain('<key>CFBundleURLSchemes</key><array><string>agent</string></array>');
  expect(plist).toContain('<string>a &amp; &quot;b&quot; &lt; c</string>');
});

/** A Mac with a default for the links and a compiler that makes a bundle. */
const mac = (home: string, script: string, opener: string | null = null, broken = '') => {
  const app = macosApp({ home, node: '/n', script });
  const state = { opener: opener ?? '' };
  const { calls, run } = record((argv) => {
    const [program = '', first] = argv;
    if (basename(program) === broken) return { ok: false, detail: 'broken' };
    if (argv.at(-1) === app.ask.at(-1)) return { ok: true, detail: `${state.opener}\n` };
    if (basename(program) === 'osacompile')
      mkdirSync(join(app.path, 'Contents'), { recursive: true });
    if (first === '-f' && state.opener === '') state.opener = app.path;
    if (first === '-u') state.opener = '';
    return fine;
  });
  const environment = {
    platform: 'darwin',
    env: {},
    home,
    node: '/n',
    script,
    uid: 501,
    run,
  } as const;
  return { app, calls, environment, state };
};

test('macOS: the app is built and announced once, and can be removed', async () => {
  const home = temporaryFolder();
  const { app, calls, environment } = mac(home, '/a.js');

  expect(await registerHandler(environment)).toMatchObject({
    status: 'registered',
    replaced: null,
  });
  expect(calls).toEqual([app.ask, app.compile, app.sign, app.announce]);
  expect(readFileSync(app.files[0].path, 'utf8')).toBe(app.files[0].content);
  expect((await registerHandler(environment)).status).toBe('already_registered');
  expect(calls).toHaveLength(5);
  expect((await registerHandler(mac(home, '/b.js', app.path).environment)).status).toBe('updated');
  expect((await unregisterHandler(environment)).status).toBe('removed');
  expect(calls.at(-1)).toEqual(app.forget);
  expect(existsSync(app.path)).toBe(false);
  expect((await unregisterHandler(environment)).status).toBe('not_registered');
});

test('macOS: another app stays the default without force', async () => {
  const { app, environment, calls } = mac(temporaryFolder(), '/a.js', '/Applications/Other.app');

  expect(await registerHandler(environment)).toMatchObject({
    status: 'taken',
    by: '/Applications/Other.app',
  });
  expect(existsSync(app.path)).toBe(false);
  expect(await registerHandler({ ...environment, force: true })).toMatchObject({
    replaced: '/Applications/Other.app',
  });
  expect(calls.at(-1)).toEqual(app.prefer);
});

test.each(['osascript', 'osacompile', 'lsregister'])(
  'macOS: when %s fails, nothing half done stays',
  async (broken) => {
    const { app, environment } = mac(temporaryFolder(), '/a.js', null, broken);

    const { status, line } = await registerHandler(environment);

    expect({ status, line }).toEqual({
      status: 'failed',
      line: expect.stringMatching(`${broken} failed: broken$`),
    });
    expect(existsSync(app.path)).toBe(false);
  },
);

test('macOS: a bundle of that name that is not ours is left alone', async () => {
  const { app, environment } = mac(temporaryFolder(), '/a.js');
  mkdirSync(app.path, { recursive: true });
  writeFileSync(join(app.path, 'mine'), '');

  expect((await registerHandler(environment)).status).toBe('failed');
  expect((await unregisterHandler(environment)).status).toBe('failed');
  expect(existsSync(join(app.path, 'mine'))).toBe(true);
});

const node = 'C:\\Program Files\\nodejs\\node.exe';
const script = 'C:\\Users\\A B\\agent.js';
const reg = 'C:\\Windows\\System32\\reg.exe';
const key = 'HKCU\\Software\\Classes\\agent';
const ours = '"C:\\Program Files\\nodejs\\node.exe" "C:\\Users\\A B\\agent.js" open-url -- "%1"';

const windows = (command: string | null, broken = '') => {
  const { calls, run } = record(([, verb]) => {
    if (verb === broken) return { ok: false, detail: 'Command failed\r\n  access denied\n' };
    if (verb !== 'query') return fine;
    return command === null
      ? { ok: false, detail: 'not found' }
      : {
          ok: true,
          detail: `\r\nHKEY_CLASSES_ROOT\\agent\r\n    (Standard)    REG_SZ    ${command}\r\n\r\n`,
        };
  });
  const environment = {
    platform: 'win32',
    env: {},
    home: 'C:\\Users\\A B',
    node,
    script,
    uid: null,
    run,
  } as const;
  return { calls, environment };
};

test('Windows: the command quotes both paths and the link', () => {
  expect(windowsOpenCommand({ node, script })).toBe(ours);
  expect(registryCommandIn(`\r\n    (Default)    REG_SZ    ${ours}\r\n`)).toBe(ours);
  expect(registryCommandIn('\r\n    (Default)    REG_SZ    (value not set)\r\n')).toBe(
    '(value not set)',
  );
  expect(registryCommandIn('')).toBeNull();
});

test('Windows: three entries of this user are added, the command last', async () => {
  const { calls, environment } = windows(null);

  expect((await registerHandler(environment)).status).toBe('registered');

  expect(calls).toEqual([
    [reg, 'query', 'HKCR\\agent\\shell\\open\\command', '/ve'],
    [reg, 'add', key, '/ve', '/d', 'URL:Agent Task Server', '/f'],
    [reg, 'add', key, '/v', 'URL Protocol', '/d', '', '/f'],
    [reg, 'add', `${key}\\shell\\open\\command`, '/ve', '/d', ours, '/f'],
  ]);
});

test.each([
  [ours, false, 'already_registered', 1],
  ['"C:\\old\\node.exe" "C:\\old\\agent.js" open-url -- "%1"', false, 'updated', 4],
  ['"C:\\other.exe" "%1"', false, 'taken', 1],
  ['"C:\\other.exe" "%1"', true, 'registered', 4],
])(
  'Windows: where %j is the command and force is %j, it is %s',
  async (command, force, status, steps) => {
    const { calls, environment } = windows(command);

    expect((await registerHandler({ ...environment, force })).status).toBe(status);
    expect(calls).toHaveLength(steps);
  },
);

test.each([
  [ours, 'removed', 2],
  ['"C:\\other.exe" "%1"', 'not_registered', 1],
  [null, 'not_registered', 1],
])('Windows: where %j is the command, unregistering says %s', async (command, status, steps) => {
  const { calls, environment } = windows(command);

  expect((await unregisterHandler(environment)).status).toBe(status);
  expect(calls).toHaveLength(steps);
});

test('Windows: a failed write or start is reported in one line', async () => {
  expect((await registerHandler(windows(null, 'add').environment)).line).toBe(
    `not registered: ${reg} failed: Command failed; access denied`,
  );
  expect(
    (await registerHandler({ ...windows(null).environment, script: 'C:\\50%1\\agent.js' })).status,
  ).toBe('failed');
});
