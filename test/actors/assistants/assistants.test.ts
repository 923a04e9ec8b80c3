import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import type { Settings } from '../../../src/actors/engine/attempts/settings.ts';
import { createBubblewrap } from '../../../src/actors/sandbox/bubblewrap.ts';
import { createNoSandbox } from '../../../src/actors/sandbox/run-sandboxed.ts';
import { hourMs } from '../../../src/machines/milliseconds.ts';
import { fakeAssistants, runsIn } from '../../support/assistants.ts';
import { png, webp } from '../../support/images.ts';
import { processesWith } from '../../support/processes.ts';
import { untilParked } from '../../support/provider-limits.ts';
import { type Running, type Setting, startSystem, untilStatus } from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';

type Name = 'codex' | 'claude' | 'command';
const talkers = ['codex', 'claude'] as const;

/** The environment of the user's machine. */
const bubblewrap = createBubblewrap({ readPaths: [], network: false });
const sandbox = bubblewrap.check().ok ? bubblewrap : createNoSandbox();

const run = async (backend: Name, play: string, more: Setting = {}, options = {}) => {
  const running = await startSystem({
    assistants: fakeAssistants(),
    sandbox,
    environment: { HOME: temporaryFolder() },
    ...more,
    options: { backend, ...more.options } satisfies Partial<Settings>,
  });
  const { task_id: id } = await running.service.create({ description: `play: ${play}` });
  await running.service.execute({ task: id, role: 'engineer', options });
  return { running, id };
};

const framesOf = ({ store }: Running, id: string, type: string) =>
  store
    .read({ taskId: id, after: 0, limit: 10_000 })
    .filter((entry) => entry.type === type)
    .map(({ data }) => JSON.parse(data));

const isAlive = (pid: number): boolean => {
  try {
    // A zombie does not count as running.
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.[0] !== 'Z';
  } catch {
    return false;
  }
};
const untilRunning = async ({ root }: Running, count = 1) =>
  vi.waitFor(() => expect(runsIn(root)).toHaveLength(count));

test.each(['codex', 'claude', 'command'] as const)(
  '%s can read the images of its task, in its sandbox',
  async (backend) => {
    const running = await startSystem({
      assistants: fakeAssistants(),
      sandbox,
      environment: { HOME: temporaryFolder() },
      options: { backend },
    });
    const attachments = [];
    for (const bytes of [png(), webp])
      attachments.push({ digest: (await running.service.upload(bytes)).digest, name: 'a' });
    const { task_id: id } = await running.service.create({
      description: 'play: sees',
      attachments,
    });
    await running.service.execute({ task: id, role: 'engineer', options: {} });

    const view = await untilStatus(running, id, 'complete', 'failed');

    expect(view.result).toContain(`I see ${attachments.map(({ digest }) => digest).join(' ')}`);
  },
);

test.each(talkers)(
  '%s completes a task; its steps are shown and its usage is counted',
  async (backend) => {
    const { running, id } = await run(backend, 'well');

    const view = await untilStatus(running, id, 'complete', 'failed');

    expect(view).toMatchObject({
      status: 'complete',
      result: 'made',
      usage: {
        turns: 3,
        model_calls: 3,
        tool_calls: 2,
        input_tokens: 300,
        cached_tokens: 30,
        output_tokens: 15,
        ...(backend === 'claude' ? { cost_usd: 0.03 } : {}),
      },
    });
    expect(framesOf(running, id, 'text_delta').map(({ text }) => text)).toEqual([
      'I begin ☃.',
      'made',
    ]);
    expect(framesOf(running, id, 'tool_end')).toMatchObject([
      { ok: true, output: 'made it' },
      { ok: true },
    ]);
    expect(running.system.counters()).toMatchObject({
      callsTotal: 3,
      inputTokens: 300,
      outputTokens: 15,
    });
    expect(
      readFileSync(join(running.root, `.beads/tasks/task-${id}/30-results.md`), 'utf8'),
    ).toMatch(new RegExp(`- Model: ${backend}\n[\\s\\S]*made[\\s\\S]*- made.txt`));
  },
);

test('a command completes a task: the end of its output is the result', async () => {
  const { running, id } = await run('command', 'well');

  const view = await untilStatus(running, id, 'complete', 'failed');

  expect(view.result).toMatch(/I begin ☃\.[\s\S]*made/);
  const [only] = runsIn(running.root);
  expect(only?.argv).toEqual([
    '--prompt',
    expect.stringMatching(/prompt\.md$/),
    '--for',
    `engineer/${id}`,
  ]);
  expect(only?.prompt).toContain('play: well');
});

test('an assistant gets its role, the rules and the task on standard input, not as arguments', async () => {
  const { running, id } = await run('codex', 'well', {}, { model: 'gpt-x' });
  await untilStatus(running, id, 'complete', 'failed');

  const [only] = runsIn(running.root);

  expect(only?.prompt).toMatch(
    /^You are an engineer\.[\s\S]*How you work:[\s\S]*Do this task\.[\s\S]*play: well/,
  );
  expect(only?.argv.join(' ')).toBe(
    'exec --json --skip-git-repo-check --sandbox workspace-write -c shell_environment_policy.ignore_default_excludes=false --model=gpt-x -',
  );
});

test('an assistant is told what is left of a budget, and does not begin at it', async () => {
  const budgets = { runUsd: null, dayUsd: 0.05, monthUsd: null };
  const { running, id } = await run('claude', 'well', { options: { budgets } });
  const again = async (): Promise<string> => {
    const { task_id } = await running.service.create({ description: 'play: well' });
    await running.service.execute({ task: task_id, role: 'engineer', options: {} });
    return task_id;
  };
  await untilStatus(running, id, 'complete', 'failed');
  await untilStatus(running, await again(), 'complete', 'failed');

  const third = await again();
  const parked = await untilParked(running, third);

  const told = runsIn(running.root).map(({ argv }) => argv[argv.indexOf('--max-budget-usd') + 1]);
  expect(told.map(Number).map((usd) => Math.round(usd * 100) / 100)).toEqual([0.05, 0.02]);
  expect(parked).toMatchObject({ attempt: 0, phase: 'backing_off' });
  expect(parked.parked_reason).toMatch(/^budget\.day_usd: 0\.06 of 0\.05 USD are spent/);
});

test.each([
  ['throttled', hourMs],
  ['throttled; pause: 90s', 90_000],
])('claude that plays %s parks, until the time that the provider names', async (play, pause) => {
  const { running, id } = await run('claude', play);

  const view = await untilParked(running, id);

  expect(view.parked_reason).toMatch(/^provider limit: claude failed: API Error: Request rejected/);
  const left = Date.parse(view.parked_until ?? '') - Date.now();
  expect(left).toBeLessThanOrEqual(pause);
  expect(left).toBeGreaterThan(pause / 2);
});

test('an assistant gets its own credentials and no other variable of the server', async () => {
  const secrets = {
    CODEX_API_KEY: 'for codex',
    ANTHROPIC_API_KEY: 'for claude',
    EXTRA: 'for all',
    OTHER: 'for nobody',
  };
  process.env['LEAKED_TOKEN'] = 'from the server';
  const assistants = fakeAssistants({ secrets, passedVariables: ['EXTRA'] });
  const { running, id } = await run('codex', 'well', { assistants });
  delete process.env['LEAKED_TOKEN'];
  await untilStatus(running, id, 'complete', 'failed');

  const names = Object.keys(runsIn(running.root)[0]?.env ?? {});

  expect(names).toEqual(
    expect.arrayContaining(['PATH', 'HOME', 'ATS_ATTEMPT', 'CODEX_API_KEY', 'EXTRA']),
  );
  expect(names.filter((name) => /ANTHROPIC|OTHER|LEAKED/.test(name))).toEqual([]);
});

test.each([
  ['codex', 'fails', 'model_failed', /^codex failed: unexpected status 401/],
  ['claude', 'fails', 'model_failed', /^claude failed: unexpected status 401/],
  ['codex', 'fails_in_json', 'model_failed', /^codex failed: API Error: 400 no such model$/],
  ['claude', 'fails_in_json', 'model_failed', /^claude failed: API Error: 400 no such model$/],
  ['command', 'fails', 'model_failed', /^command ended with exit code 1/],
  ['codex', 'gives_up', 'model_failed', /^the agent gave up: the file is not there/],
  ['claude', 'gives_up', 'model_failed', /^the agent gave up: the file is not there/],
  ['codex', 'silent', 'model_failed', /^codex ended without a result/],
  ['claude', 'silent', 'model_failed', /^claude ended without a result/],
  ['command', 'silent', 'model_failed', /^command ended without a result/],
  ['codex', 'breaks', 'model_failed', /^codex ended with exit code 3: something; the last words$/],
  [
    'claude',
    'breaks',
    'model_failed',
    /^claude ended with exit code 3: something; the last words$/,
  ],
  [
    'command',
    'throws',
    'model_failed',
    /^command ended with exit code 1: Error: Cannot find module '\/nowhere\/plugin.cjs'/,
  ],
  [
    'codex',
    'starts_nothing',
    'tool_failed',
    /^codex could not start any of its commands: bwrap: Creating new namespace/,
  ],
] as const)('%s that plays "%s" is not success: %s', async (backend, play, code, message) => {
  const { running, id } = await run(backend, play);

  const view = await untilStatus(running, id, 'complete', 'failed');

  expect(view).toMatchObject({
    status: 'failed',
    error: { code, message: expect.stringMatching(message) },
  });
});

test('a temporary failure leads to another attempt, any other does not', async () => {
  const [busy, refused] = [await run('codex', 'busy'), await run('codex', 'fails')];

  for (const { running, id } of [busy, refused])
    await untilStatus(running, id, 'complete', 'failed');
  const retryable = ({ running, id }: typeof busy) =>
    running.store.actor(`${id}#1`)?.snapshot.includes('"retryable":true');

  expect([retryable(busy), retryable(refused)]).toEqual([true, false]);
});

test.each(talkers)(
  'characters of several bytes that %s sends in pieces stay whole',
  async (backend) => {
    const { running, id } = await run(backend, 'split');

    expect((await untilStatus(running, id, 'complete', 'failed')).result).toBe(
      'Schnee ☃ 雪\u2028 𝒳',
    );
  },
);

test.each(talkers)('output of %s beside its events is ignored', async (backend) => {
  const { running, id } = await run(backend, 'nonsense');

  expect((await untilStatus(running, id, 'complete', 'failed')).result).toBe('all the same');
});

test('an endless line is left out, and the lines after it are read', async () => {
  const { running, id } = await run('codex', 'one_long_line');

  expect((await untilStatus(running, id, 'complete', 'failed')).result).toBe('after it');
  expect(framesOf(running, id, 'log')).toContainEqual({
    level: 'warn',
    message: expect.stringMatching(/line longer/),
  });
});

test('an assistant that floods its output is ended, and the journal stays small', {
  tags: ['slow'],
}, async () => {
  const { running, id } = await run('codex', 'flood', {}, { maxTurns: 1_000_000 });

  const view = await untilStatus(running, id, 'complete', 'failed');
  const held = framesOf(running, id, 'text_delta').reduce((all, { text }) => all + text.length, 0);

  expect(view.error).toMatchObject({
    code: 'model_failed',
    message: 'codex wrote more than 64 MiB and was ended',
  });
  expect(held).toBeGreaterThan(1_000_000);
  expect(held).toBeLessThan(4_500_000);
});

test('an assistant that does not exit after its result is ended, and the result counts', {
  tags: ['slow'],
}, async () => {
  const { running, id } = await run('claude', 'lingers');

  expect((await untilStatus(running, id, 'complete', 'failed')).result).toBe('here it is');
});

test.each([
  ['max_turns', { maxTurns: 4 }, 'codex'],
  ['max_turns', { maxTurns: 4 }, 'claude'],
  ['max_tokens_total', { maxTokensTotal: 400 }, 'claude'],
] as const)('the limit %s of %j ends %s while it works', async (limit, options, backend) => {
  const { running, id } = await run(backend, 'spends', {}, options);

  const view = await untilStatus(running, id, 'complete', 'failed');

  expect(view.error).toMatchObject({ code: 'budget_exceeded', facts: { limit } });
  expect(view.usage.turns).toBeLessThanOrEqual(5);
});

test('codex, which reports its usage only at the end, is stopped at a limit by its session file', async () => {
  const assistants = fakeAssistants({ secrets: { CODEX_HOME: temporaryFolder() } });
  const { running, id } = await run(
    'codex',
    'spends',
    { assistants },
    { maxTokensTotal: 400, maxTurns: 900 },
  );

  const view = await untilStatus(running, id, 'complete', 'failed');

  expect(view.error).toMatchObject({
    code: 'budget_exceeded',
    facts: { limit: 'max_tokens_total' },
  });
  expect(view.usage.input_tokens).toBeGreaterThanOrEqual(400);
});

test('the usage of codex before a cancel during a tool call is counted', async () => {
  const assistants = fakeAssistants({ secrets: { CODEX_HOME: temporaryFolder() } });
  const { running, id } = await run('codex', 'hangs_in_a_tool', { assistants });
  await vi.waitFor(async () =>
    expect((await running.service.status(id)).usage.input_tokens).toBe(100),
  );

  await running.service.cancel(id, null);

  expect((await untilStatus(running, id, 'cancelled')).usage).toMatchObject({
    model_calls: 1,
    output_tokens: 5,
  });
});

test('a run of claude that is cut costs what its tokens cost by the list', async () => {
  const secrets = { FAKE_CLAUDE_MODEL: 'claude-sonnet-4-5' };
  const assistants = fakeAssistants({ secrets, passedVariables: Object.keys(secrets) });
  const { running, id } = await run('claude', 'hangs_in_a_tool', { assistants });
  await vi.waitFor(async () =>
    expect((await running.service.status(id)).usage.input_tokens).toBe(100),
  );
  const costs = () =>
    running.store
      .read({ taskId: id, after: 0, limit: 1_000 })
      .filter(({ type }) => type === 'usage')
      .map(({ data }) => JSON.parse(data).cost_usd ?? 0);
  expect(costs()).toEqual([0]);

  await running.service.cancel(id, null);
  await untilStatus(running, id, 'cancelled');

  // 80 tokens at 3 USD for a million, 10 read at 0.3, 10 written at 3.75; one out at 15.
  expect(costs()).toEqual([0, expect.closeTo(0.000_295_5, 8)]);
  const { usage, attempts } = await running.service.status(id);
  const cost = { input_tokens: 100, cost_usd: expect.closeTo(0.000_295_5, 8) };
  expect(usage).toMatchObject(cost);
  expect(attempts).toMatchObject([cost]);
});

test('the usage of codex before it became silent is counted', { tags: ['slow'] }, async () => {
  const assistants = fakeAssistants({ secrets: { CODEX_HOME: temporaryFolder() } });
  const { running, id } = await run('codex', 'hangs_in_a_tool', {
    assistants,
    options: { idleMs: 10_000 },
  });

  expect(await untilStatus(running, id, 'complete', 'failed')).toMatchObject({
    error: { code: 'timed_out' },
    usage: { input_tokens: 100, output_tokens: 5 },
  });
});

test.each(['hang', 'stubborn'])(
  'the time limit ends an assistant that plays "%s"',
  async (play) => {
    const { running, id } = await run('codex', play, {}, { timeoutMs: 1_500 });

    expect((await untilStatus(running, id, 'complete', 'failed')).error).toMatchObject({
      code: 'timed_out',
    });
  },
  20_000,
);

test('an assistant that is silent for too long is ended, and the failure names it', async () => {
  const { running, id } = await run('codex', 'hang', { options: { idleMs: 700 } });

  expect((await untilStatus(running, id, 'complete', 'failed')).error).toMatchObject({
    code: 'timed_out',
    message: 'codex was silent for too long',
    facts: { limit: 'idle_timeout_seconds' },
  });
});

describe.each([
  ['hang', sandbox, []],
  ['hang', createNoSandbox(), []],
  ['stubborn', createNoSandbox(), ['slow']],
  ['daemon', sandbox, []],
  ['daemon', createNoSandbox(), ['slow']],
])('cancel of an assistant that plays "%s"', (play, held, tags) => {
  test('ends all of its processes', { tags, timeout: 20_000 }, async () => {
    const { running, id } = await run('codex', play, { sandbox: held });
    await untilRunning(running);
    await vi.waitFor(() =>
      expect(play !== 'daemon' || readFileSync(join(running.root, 'daemon'), 'utf8')).toBeTruthy(),
    );
    const mark = new RegExp(`\0ATS_ATTEMPT=${runsIn(running.root)[0]?.env['ATS_ATTEMPT']}\0`);
    expect(processesWith(mark)).not.toEqual([]);

    await running.service.cancel(id, null);
    await untilStatus(running, id, 'cancelled');

    expect(processesWith(mark)).toEqual([]);
  });
});

test('a daemon that an assistant leaves behind is ended with it', async () => {
  const { running, id } = await run('codex', 'leaves_daemon');
  const mark = new RegExp(`\0ATS_ATTEMPT=[0-9a-f]{12}/${id}#1\0`);

  expect((await untilStatus(running, id, 'complete', 'failed')).result).toBe('left one');

  expect(readFileSync(join(running.root, 'daemon'), 'utf8')).toMatch(/^\d+$/);
  expect(processesWith(mark)).toEqual([]);
});

test('outside the sandbox a daemon that an assistant leaves behind is ended and reported', async () => {
  const { running, id } = await run('codex', 'leaves_daemon', { sandbox: createNoSandbox() });

  expect((await untilStatus(running, id, 'complete', 'failed')).result).toBe('left one');

  expect(isAlive(Number(readFileSync(join(running.root, 'daemon'), 'utf8')))).toBe(false);
  expect(framesOf(running, id, 'log')).toContainEqual({
    level: 'warn',
    message: 'the assistant left processes behind; they were ended',
  });
});

test.each(talkers)(
  'work of %s that fails its checks is sent back in the same session',
  async (backend) => {
    const verify = ['grep -q right made.txt || { echo it is wrong; exit 1; }'];
    const { running, id } = await run(backend, 'well', {}, { verify });

    const view = await untilStatus(running, id, 'complete', 'failed');
    const [first, second] = runsIn(running.root);

    expect(view).toMatchObject({ status: 'complete', attempt: 1, result: 'mended' });
    expect(view.usage).toMatchObject({ turns: 6, input_tokens: 600, output_tokens: 30 });
    if (backend === 'claude') expect(view.usage.cost_usd).toBeCloseTo(0.06);
    expect(second?.id).toBe(first?.id);
    expect(second?.prompt).toMatch(/^Your work is not accepted yet\.[\s\S]*it is wrong/);
    expect(second?.prompt).not.toContain('You are an engineer');
  },
);

test.each(['codex', 'claude', 'command'] as const)(
  '%s is told once, when it ends, what a person said meanwhile',
  async (backend) => {
    const { running, id } = await run(backend, 'waits');
    await untilRunning(running);

    await running.service.tell(id, 'use tabs');
    writeFileSync(join(running.root, 'go'), '');
    const view = await untilStatus(running, id, 'complete', 'failed');

    const prompts = runsIn(running.root).map(({ prompt }) => prompt);
    expect(view).toMatchObject({ status: 'complete', attempt: 1 });
    expect(prompts.map((prompt) => prompt.split('use tabs').length - 1)).toEqual([0, 1]);
    expect(prompts[1]?.startsWith('A person says:')).toBe(backend !== 'command');
  },
);

test('a command, which has no session, gets the whole prompt again with the output of the check', {
  tags: ['slow'],
}, async () => {
  const verify = ['grep -q right made.txt || { echo it is wrong; exit 1; }'];
  const { running, id } = await run('command', 'well', {}, { verify });

  expect((await untilStatus(running, id, 'complete', 'failed')).status).toBe('complete');
  expect(runsIn(running.root)[1]?.prompt).toMatch(
    /^You are an engineer[\s\S]*not accepted yet[\s\S]*it is wrong/,
  );
});
