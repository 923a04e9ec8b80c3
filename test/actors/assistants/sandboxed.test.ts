import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createCommandAssistant } from '../../../src/actors/assistants/command.ts';
import { createBubblewrap } from '../../../src/actors/sandbox/bubblewrap.ts';
import { forAssistant } from '../../../src/actors/sandbox/port.ts';
import { runSandboxed } from '../../../src/actors/sandbox/run-sandboxed.ts';
import { fakeAssistants } from '../../support/assistants.ts';
import { noSandbox, testUnless } from '../../support/needs.ts';
import { bash, finish, type Setting, startSystem, untilStatus } from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const sandbox = createBubblewrap({ readPaths: [], network: false });

/** Not in the temporary folder, which a sandbox hides anyway. */
const folderOutside = (): string => {
  const folder = realpathSync(mkdtempSync('/var/tmp/agent-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

/** A home with an assistant's files and with private files. */
const makeHome = () => {
  const home = folderOutside();
  for (const folder of [
    '.codex/sessions',
    '.codex/log',
    '.claude/projects',
    '.claude/todos',
    '.ssh',
  ])
    mkdirSync(join(home, folder), { recursive: true });
  for (const file of [
    '.codex/config.toml',
    '.codex/auth.json',
    '.codex/state_5.sqlite',
    '.claude/settings.json',
  ])
    writeFileSync(join(home, file), 'as it was');
  for (const file of ['.claude.json', '.claude/.credentials.json', '.ssh/id_ed25519', '.npmrc'])
    writeFileSync(join(home, file), 'as it was');
  return home;
};

/** A program of the user that runs what a file of the project says, as many tools do. */
const obeyingProgram = (): string => {
  const program = join(folderOutside(), 'obeying.mjs');
  const text = `#!/usr/bin/env node
import { existsSync, readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
const config = JSON.parse(existsSync('opencode.json') ? readFileSync('opencode.json', 'utf8') : '{"plugin":"plugin.mjs"}');
await import(pathToFileURL(config.plugin).href);
console.log('it obeyed');
`;
  writeFileSync(program, text, { mode: 0o755 });
  return program;
};

/** Runs as an assistant, and writes the result of each of these commands into the workspace. */
const programThat = (lines: readonly string[]): string => {
  const program = join(folderOutside(), 'program.sh');
  writeFileSync(program, ['#!/bin/bash', 'cat > /dev/null', ...lines, 'echo done', ''].join('\n'), {
    mode: 0o755,
  });
  return program;
};

const runProgram = async (lines: readonly string[], setting: Setting = {}, home = makeHome()) => {
  const running = await startSystem({
    assistants: fakeAssistants({ command: createCommandAssistant([programThat(lines)]) }),
    sandbox,
    environment: { HOME: home },
    ...setting,
    options: { backend: 'command', ...setting.options },
  });
  const { task_id: id } = await running.service.create({ description: 'work' });
  await running.service.execute({ task: id, role: 'engineer', options: {} });
  const view = await untilStatus(running, id, 'complete', 'failed');
  return { running, view, home };
};

testUnless(noSandbox)(
  'a file that an agent planted does not give a later command the token',
  async () => {
    const state = folderOutside();
    writeFileSync(join(state, 'token'), 'the token of the server');
    const plugin = `
import { copyFileSync, writeFileSync } from 'node:fs';
const tried = {};
const attempt = (name, work) => { try { work(); tried[name] = 'done'; } catch (error) { tried[name] = error.code; } };
attempt('token', () => copyFileSync('${state}/token', 'token'));
attempt('outside', () => writeFileSync('${state}/planted', 'x'));
writeFileSync('tried.json', JSON.stringify(tried));
`;
    const setting: Setting = {
      sandbox,
      assistants: fakeAssistants({ command: createCommandAssistant([obeyingProgram()]) }),
      environment: { HOME: makeHome() },
      turns: [
        bash(
          `cat > plugin.mjs <<'END'\n${plugin}\nEND\necho '{"plugin":"plugin.mjs"}' > opencode.json; true`,
        ),
        finish(),
      ],
    };
    const running = await startSystem(setting);
    const first = (await running.service.create({ description: 'plant it' })).task_id;
    await running.service.execute({ task: first, role: 'engineer', options: {} });
    await untilStatus(running, first, 'complete', 'failed');
    await running.stop();
    const options = { backend: 'command' } as const;
    const next = await startSystem({
      ...setting,
      root: running.root,
      stateDir: running.stateDir,
      options,
    });
    const second = (await next.service.create({ description: 'go on', dependencies: [first] }))
      .task_id;
    await next.service.execute({ task: second, role: 'engineer', options: {} });

    expect((await untilStatus(next, second, 'complete', 'failed')).result).toContain('it obeyed');
    expect(JSON.parse(readFileSync(join(next.root, 'tried.json'), 'utf8'))).toEqual({
      token: 'ENOENT',
      outside: 'ENOENT',
    });
    expect(existsSync(join(next.root, 'token'))).toBe(false);
    expect(readdirSync(state)).toEqual(['token']);
  },
);

testUnless(noSandbox)('an assistant sees only its own files of the home folder', async () => {
  const { running, home } = await runProgram([
    'ls -A "$HOME" > seen.txt; echo x > "$HOME/new" && echo wrote >> seen.txt',
  ]);

  expect(readFileSync(join(running.root, 'seen.txt'), 'utf8')).toBe('wrote\n');
  expect(existsSync(join(home, 'new'))).toBe(false);
});

testUnless(noSandbox).each([
  ['codex', '.codex', 'sessions', 'auth.json', 'config.toml'],
  ['claude', '.claude', 'projects', '.credentials.json', 'settings.json'],
] as const)(
  '%s keeps its sessions of one project and its login, sees no other sessions, reads its settings, and leaves nothing else',
  async (name, folder, sessions, login, settings) => {
    const home = makeHome();
    const own = fakeAssistants()['of'](name);
    const needs = own?.needs({ HOME: home });
    if (needs === undefined) throw new Error('there is no such assistant');
    writeFileSync(join(home, folder, sessions, 'of-another-project'), 'secret');
    const script = [
      `cd "$HOME/${folder}"`,
      `ls -A ${sessions}; cat ${sessions}/* 2>&1; echo planted > ${sessions}/of-another-project`,
      `echo kept > ${sessions}/one; echo renewed > ${login}; cat ${settings}`,
      `echo x > ${settings}; rm -f ${settings}; mv ${settings} other; echo x > hooks.json; mkdir -p log todos; echo x > log/l`,
      'ls -A "$HOME"',
    ].join('\n');
    const runIn = (root: string, text: string) =>
      runSandboxed(forAssistant(sandbox, needs), {
        argv: ['/bin/bash', '-c', text],
        root,
        readable: [],
        env: { PATH: process.env['PATH'] ?? '', HOME: home },
        network: true,
        timeoutMs: 10_000,
        signal: new AbortController().signal,
        headBytes: 10_000,
        tailBytes: 10_000,
      });
    const [root, other] = [temporaryFolder(), temporaryFolder()];
    const result = await runIn(root, script);
    const list = `cat "$HOME/${folder}/${sessions}/one"`;

    expect(await runIn(root, list)).toMatchObject({ output: 'kept\n' });
    expect(await runIn(other, list)).toMatchObject({
      output: expect.stringContaining('No such file'),
    });
    expect(result).toMatchObject({ output: expect.not.stringContaining('secret') });
    expect(readdirSync(join(home, folder, sessions))).toEqual(['of-another-project']);
    expect(readFileSync(join(home, folder, sessions, 'of-another-project'), 'utf8')).toBe('secret');
    expect(result).toMatchObject({ output: expect.stringContaining('as it was') });
    expect(result).toMatchObject({ output: expect.not.stringMatching(/\.ssh|\.npmrc/) });
    expect(readFileSync(join(home, folder, login), 'utf8')).toBe('renewed\n');
    expect(readFileSync(join(home, folder, settings), 'utf8')).toBe('as it was');
    expect(existsSync(join(home, folder, 'hooks.json'))).toBe(false);
    expect(existsSync(join(home, folder, 'log/l'))).toBe(false);
  },
);

test('without bubblewrap an assistant is refused, and the refusal says what to install', async () => {
  const none = createBubblewrap({ readPaths: [], network: false, bwrap: '/nowhere/bwrap' });
  const { view, running } = await runProgram(['touch it-ran'], { sandbox: none });

  expect(view.error).toMatchObject({
    code: 'tool_failed',
    message: expect.stringMatching(
      /^no assistant runs without a sandbox: bubblewrap is not installed.*sandbox\.assistants to off/,
    ),
  });
  expect(existsSync(join(running.root, 'it-ran'))).toBe(false);
});

test('an assistant runs outside the sandbox if the user configures it', async () => {
  const program = createCommandAssistant([programThat(['ls -A "$HOME" > seen.txt'])]);
  const assistants = fakeAssistants({ command: program, sandboxed: false });
  const { running } = await runProgram([], { assistants });

  expect(readFileSync(join(running.root, 'seen.txt'), 'utf8')).toContain('.ssh');
});

testUnless(noSandbox)(
  'an assistant has a network namespace of its own; its commands see no other processes',
  async () => {
    const { running } = await runProgram([
      'readlink /proc/self/ns/net > net.txt; ls -d /proc/[0-9]* | wc -l > processes.txt',
    ]);

    expect(readFileSync(join(running.root, 'net.txt'), 'utf8').trim()).not.toBe(
      readlinkSync('/proc/self/ns/net'),
    );
    expect(Number(readFileSync(join(running.root, 'processes.txt'), 'utf8'))).toBeLessThan(10);
  },
);

testUnless(noSandbox)('no variable of the server reaches an assistant in the sandbox', async () => {
  process.env['LEAKED_TOKEN'] = 'from the server';
  const { running } = await runProgram(['cat /proc/*/environ | tr "\\0" "\\n" > variables.txt']);
  delete process.env['LEAKED_TOKEN'];

  expect(readFileSync(join(running.root, 'variables.txt'), 'utf8')).not.toContain('LEAKED_TOKEN');
});
