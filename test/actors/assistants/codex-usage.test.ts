import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, mkdirSync, openSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { watchSession } from '../../../src/actors/assistants/codex.ts';
import type { AssistantEvent } from '../../../src/actors/assistants/port.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const session = '01900000-0000-7000-8000-000000000000';
const record = (id: string): string =>
  `${JSON.stringify({ timestamp: '2026-01-01T00:00:00Z', type: 'token_usage_record', payload: { response_id: id, usage: { input_tokens: 1 } } })}\n`;

/** The home of codex, and the folder of the session's day. */
const makeHome = () => {
  const home = temporaryFolder();
  const [year = '', month = '', day = ''] = new Date(0x019000000000).toISOString().split(/[-T]/);
  const folder = join(home, 'sessions', year, month, day);
  mkdirSync(folder, { recursive: true });
  return { home, folder, file: join(folder, `rollout-${session}.jsonl`) };
};

const watch = (home: string, events: AssistantEvent[]) =>
  watchSession({
    session,
    root: '/project',
    env: { CODEX_HOME: home },
    since: 0,
    onEvent: (event) => events.push(event),
  });

/** Swaps the pipe and the file without end. */
const swapping = `my ($file, $pipe, $at) = @ARGV; $| = 1; my $n = 0;
while (1) { for ($pipe, $file) { link($_, "$at.new"); rename("$at.new", $at); } print "x" if $n++ == 0; }`;

test('a session file that becomes a pipe while it is opened blocks nothing', async () => {
  const { home, folder, file } = makeHome();
  const [pipe, plain] = [join(folder, 'pipe'), join(folder, 'plain')];
  execFileSync('mkfifo', [pipe]);
  writeFileSync(plain, record('one'));
  const swapper = spawn('perl', ['-e', swapping, plain, pipe, file], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  onTestFinished(() => {
    swapper.kill('SIGKILL');
    // Unblocks a reader that still waits for a writer.
    closeSync(openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK));
  });
  await once(swapper.stdout, 'data');
  const events: AssistantEvent[] = [];

  for (let i = 0; i < 500; i += 1) await watch(home, events)();

  expect(events.length).toBeGreaterThan(0);
});

test('a session file of 100 GB does not delay the end of a run', {
  tags: ['slow'],
}, async () => {
  const { home, file } = makeHome();
  writeFileSync(file, record('one'));
  truncateSync(file, 100 * 1024 ** 3);
  const events: AssistantEvent[] = [];

  await watch(home, events)();

  expect(events).toHaveLength(1);
});
