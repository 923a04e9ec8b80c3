import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { createAcp } from '../../../src/actors/assistants/acp/acp.ts';
import type { Settings } from '../../../src/actors/engine/attempts/settings.ts';
import { createBubblewrap } from '../../../src/actors/sandbox/bubblewrap.ts';
import { createNoSandbox } from '../../../src/actors/sandbox/run-sandboxed.ts';
import { hourMs } from '../../../src/machines/milliseconds.ts';
import { fakeAssistants, fakeProgram, runsIn } from '../../support/assistants.ts';
import { png } from '../../support/images.ts';
import { stdioServer } from '../../support/mcp.ts';
import { noSandbox, testUnless } from '../../support/needs.ts';
import { processesWith } from '../../support/processes.ts';
import { untilParked } from '../../support/provider-limits.ts';
import { type Running, type Setting, startSystem, untilStatus } from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const bubblewrap = createBubblewrap({ readPaths: [], network: false });
const sandbox = bubblewrap.check().ok ? bubblewrap : createNoSandbox();

const deadlines = { initializeMs: 5_000, sessionMs: 5_000 };
const run = async (
  play: string,
  more: Setting & { readonly flags?: readonly string[] } = {},
  options = {},
) => {
  const { flags = [], ...setting } = more;
  const running = await startSystem({
    assistants: fakeAssistants({ acp: createAcp([fakeProgram('acp'), ...flags], deadlines) }),
    sandbox,
    environment: { HOME: temporaryFolder() },
    ...setting,
    options: { backend: 'acp', ...setting.options } satisfies Partial<Settings>,
  });
  const { task_id: id } = await running.service.create({ description: `play: ${play}` });
  await running.service.execute({ task: id, role: 'engineer', options });
  return { running, id };
};

const untilOver = ({ running, id }: Awaited<ReturnType<typeof run>>) =>
  untilStatus(running, id, 'complete', 'failed');

const framesOf = ({ store }: Running, id: string, type: string) =>
  store
    .read({ taskId: id, after: 0, limit: 10_000 })
    .filter((entry) => entry.type === type)
    .map(({ data }) => JSON.parse(data));

const heardIn = ({ root }: Running) =>
  readFileSync(join(root, 'heard.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

test('an agent completes a task; its messages, calls and plan are shown', async () => {
  const started = await run('well');
  const { running, id } = started;

  const view = await untilOver(started);

  expect(view).toMatchObject({ status: 'complete', result: 'made', usage: { tool_calls: 2 } });
  expect(
    framesOf(running, id, 'text_delta')
      .map(({ text }) => text)
      .join(''),
  ).toBe('I begin ☃.made');
  expect(framesOf(running, id, 'tool_start')).toMatchObject([
    { tool: 'bash', arguments: '{"title":"execute it","input":{"command":"make it"}}' },
    { tool: 'edit' },
  ]);
  expect(framesOf(running, id, 'tool_end')).toMatchObject([
    { tool: 'bash', ok: true, output: 'made it' },
    { tool: 'edit', ok: true, output: 'written' },
  ]);
  expect(framesOf(running, id, 'log')).toContainEqual({
    level: 'info',
    message: 'plan: 0 of 2 done; now: make it',
  });
  expect(readFileSync(join(running.root, `.beads/tasks/task-${id}/30-results.md`), 'utf8')).toMatch(
    /- Model: acp\.mjs\n[\s\S]*made[\s\S]*- made.txt/,
  );
});

test.each([
  ['with its prompt, if it takes them', [], 1],
  ['as files alone, if it does not', ['--blind'], 0],
])('an agent gets the images of its task %s', async (_, flags, blocks) => {
  const running = await startSystem({
    assistants: fakeAssistants({ acp: createAcp([fakeProgram('acp'), ...flags], deadlines) }),
    sandbox,
    environment: { HOME: temporaryFolder() },
    options: { backend: 'acp' },
  });
  const { digest } = await running.service.upload(png());
  const task = { description: 'play: sees', attachments: [{ digest, name: 'a' }] };
  const { task_id: id } = await running.service.create(task);
  await running.service.execute({ task: id, role: 'engineer', options: {} });

  const view = await untilStatus(running, id, 'complete', 'failed');

  expect(view.result).toBe(`I see ${digest}`);
  const asked = heardIn(running).find(({ method }) => method === 'session/prompt');
  const image = { type: 'image', mimeType: 'image/png', data: png().toString('base64') };
  expect(asked.params.prompt.slice(1)).toEqual(Array(blocks).fill(image));
});

test('the prompt has role, rules and task; no capability of files or terminals is offered', async () => {
  const started = await run('well');
  await untilOver(started);

  const [initialize, created] = heardIn(started.running);

  expect(runsIn(started.running.root)[0]?.prompt).toMatch(
    /^You are an engineer\.[\s\S]*How you work:[\s\S]*Do this task\.[\s\S]*play: well/,
  );
  expect(initialize.params.clientCapabilities).toEqual({
    fs: { readTextFile: false, writeTextFile: false },
    terminal: false,
  });
  expect(created).toMatchObject({ method: 'session/new', params: { mcpServers: [] } });
});

test('a model that the agent offers is chosen, another one fails the run', async () => {
  const [offered, other] = [
    await run('well', {}, { model: 'small' }),
    await run('well', {}, { model: 'huge' }),
  ];

  expect((await untilOver(offered)).status).toBe('complete');
  expect(heardIn(offered.running)).toContainEqual(
    expect.objectContaining({
      method: 'session/set_config_option',
      params: { sessionId: 'session-1', configId: 'model', value: 'small' },
    }),
  );
  expect((await untilOver(other)).error).toMatchObject({
    code: 'model_failed',
    message: 'acp.mjs failed: it offers no model huge, but large, small',
  });
});

test.each([
  ['well', ['--logged-out'], 'model_failed', /^acp.mjs failed: Authentication required$/],
  ['well', ['--newer'], 'model_failed', /failed: it does not speak version 1 of the Agent Client/],
  ['fails', [], 'model_failed', /^acp.mjs failed: Internal error: no such model$/],
  ['error_as_text', [], 'model_failed', /^acp.mjs failed: 500 the model is away$/],
  ['thread_fails', [], 'model_failed', /^acp.mjs failed: exceeded retry limit, last status: 500/],
  ['thread_fails', ['--wordless'], 'model_failed', /^acp.mjs failed: unexpected status 500 Inter/],
  ['gives_up', [], 'model_failed', /^the agent gave up: the file is not there/],
  ['silent', [], 'model_failed', /^acp.mjs ended without a result/],
  ['refuses', [], 'model_failed', /failed: the model refused to go on$/],
  ['cut', [], 'model_failed', /failed: its answer was cut at the limit of tokens$/],
  ['surprises', [], 'model_failed', /failed: its answer gives no known reason to stop$/],
  ['dies', [], 'model_failed', /^acp.mjs ended with exit code 3: something; the last words$/],
  ['one_long_line', [], 'model_failed', /failed: it wrote a line longer than 8 MiB/],
] as const)('%s with %j is not success', async (play, flags, code, message) => {
  expect(await untilOver(await run(play, { flags }))).toMatchObject({
    status: 'failed',
    error: { code, message: expect.stringMatching(message) },
  });
});

test('an agent that never answers initialize is given up', {
  tags: ['slow'],
}, async () => {
  const acp = createAcp([fakeProgram('acp'), '--mute'], { initializeMs: 700, sessionMs: 700 });
  const started = await run('well', { assistants: fakeAssistants({ acp }) });

  expect((await untilOver(started)).error).toMatchObject({
    message: 'acp.mjs failed: it did not answer initialize within 0.7 s',
  });
});

test.each([
  ['nonsense', 'all the same'],
  ['unknown_methods', '-32601 -32601 cancelled'],
  ['answers_twice', expect.stringMatching(/^once/)],
  ['lingers', 'here it is'],
  ['flood_of_calls', 'made'],
  ['thread_recovers', 'made'],
  ['quotes_an_error', expect.stringMatching(/^The server no longer says/)],
])(
  '%s does no harm',
  async (play, result) => {
    expect(await untilOver(await run(play))).toMatchObject({ status: 'complete', result });
  },
  20_000,
);

test.each(['flood', 'flood_of_requests'])('%s is ended', { tags: ['slow'] }, async (play) => {
  const started = await run(play);

  expect(await untilOver(started)).toMatchObject({ status: 'failed' });
  expect(JSON.stringify(framesOf(started.running, started.id, 'text_delta')).length).toBeLessThan(
    5_000_000,
  );
});

test('a used-up quota parks the attempt', async () => {
  const { running, id } = await run('limited');

  await vi.waitFor(async () =>
    expect(await running.service.status(id)).toMatchObject({
      status: 'queued',
      parked_reason: expect.stringMatching(/usage limit/),
    }),
  );
});

test.each([
  ['busy', hourMs],
  ['limit_as_text', 2_500],
])('%s parks the attempt, until the time that the provider names', async (play, longest) => {
  const { running, id } = await run(play);

  const view = await untilParked(running, id);

  expect(view.parked_reason).toMatch(/^provider limit: acp.mjs failed: (429 )?Rate limit/);
  const pause = Date.parse(view.parked_until ?? '') - Date.now();
  expect(pause).toBeGreaterThan(longest === hourMs ? hourMs / 2 : 0);
  expect(pause).toBeLessThanOrEqual(longest);
});

test('copilot ends as done after an error of its provider; the attempt fails with its words', async () => {
  const copilot = join(temporaryFolder(), 'copilot');
  symlinkSync(fakeProgram('acp'), copilot);
  const assistants = fakeAssistants({ acp: createAcp([copilot], deadlines) });

  expect((await untilOver(await run('error_after_text', { assistants }))).error).toMatchObject({
    message: 'copilot failed: Failed to get response from the AI model; retried 5 times',
  });
});

test('a temporary failure may be tried again, any other may not', async () => {
  const [busy, fails] = [await run('overloaded'), await run('fails')];

  for (const each of [busy, fails]) await untilOver(each);
  const retryable = ({ running, id }: typeof busy) =>
    running.store.actor(`${id}#1`)?.snapshot.includes('"retryable":true');

  expect([retryable(busy), retryable(fails)]).toEqual([true, false]);
});

test.each([
  ['hang', true],
  ['stubborn', false],
  ['daemon', false],
] as const)(
  'cancel asks an agent that plays %s to stop, and ends its processes',
  { tags: ['slow'] },
  async (play, stops) => {
    const { running, id } = await run(play);
    await vi.waitFor(() => expect(runsIn(running.root)).toHaveLength(1));
    const mark = new RegExp(`\0ATS_ATTEMPT=${runsIn(running.root)[0]?.env['ATS_ATTEMPT']}\0`);
    expect(processesWith(mark)).not.toEqual([]);
    const before = performance.now();

    await running.service.cancel(id, null);
    await untilStatus(running, id, 'cancelled');

    expect(processesWith(mark)).toEqual([]);
    expect(heardIn(running).at(-1)).toMatchObject({
      method: 'session/cancel',
      params: { sessionId: 'session-1' },
    });
    if (stops) expect(performance.now() - before).toBeLessThan(1_000);
  },
);

test('an agent that is silent for too long is ended', async () => {
  expect((await untilOver(await run('hang', { options: { idleMs: 700 } }))).error).toMatchObject({
    code: 'timed_out',
    message: 'acp.mjs was silent for too long',
  });
});

test.each([
  ['session/resume', []],
  ['session/load', ['--load']],
] as const)('work that fails its checks goes on by %s', async (method, flags) => {
  const verify = ['grep -q right made.txt || { echo it is wrong; exit 1; }'];
  const started = await run('well', { flags }, { verify });

  const view = await untilOver(started);
  const [first, second] = runsIn(started.running.root);

  expect(view).toMatchObject({ status: 'complete', attempt: 1, result: 'mended' });
  expect(second?.id).toBe(first?.id);
  expect(second?.prompt).toMatch(/^Your work is not accepted yet\.[\s\S]*it is wrong/);
  expect(heardIn(started.running).map((each) => each.method)).toContain(method);
  const shown = framesOf(started.running, started.id, 'text_delta').map(({ text }) => text);
  expect(shown.join('')).not.toContain('said before');
});

test.each([['--no-resume'], ['--forgets', '--load']])(
  'with %s a new session begins, and is told what was before',
  async (...flags) => {
    const verify = ['grep -q right made.txt || { echo it is wrong; exit 1; }'];
    const started = await run('well', { flags }, { verify });

    const view = await untilOver(started);
    const [first, second] = runsIn(started.running.root);

    expect(view).toMatchObject({ status: 'complete', attempt: 1, result: 'mended' });
    expect(second?.id).not.toBe(first?.id);
    expect(second?.prompt).toMatch(
      /^You are an engineer\.[\s\S]*not accepted yet[\s\S]*it is wrong/,
    );
    expect(framesOf(started.running, started.id, 'log')).toContainEqual({
      level: 'warn',
      message: expect.stringMatching(/^the session session-1 does not go on \(.*\); a new one/),
    });
  },
);

const withApproval = (...approvals: readonly string[]) => ({ approvals });
const untilAsked = async ({ running, id }: Awaited<ReturnType<typeof run>>, last = '') =>
  vi.waitFor(async () => {
    const { awaiting } = await running.service.status(id);
    expect(awaiting?.input_id ?? last).not.toBe(last);
    return awaiting as NonNullable<typeof awaiting>;
  });
const respond = (
  { running, id }: Awaited<ReturnType<typeof run>>,
  inputId: string,
  decision: 'allow' | 'deny',
) => running.service.respond(id, 1, { type: 'respond', inputId, text: null, decision });

test('without require_approval a permission is given for one call, not for ever', async () => {
  const [once, always] = [await run('asks'), await run('asks_for_ever')];

  expect((await untilOver(once)).result).toBe('answered once');
  expect((await untilOver(always)).result).toBe('answered cancelled');
});

test.each([
  ['allow', 'answered once', true],
  ['deny', 'answered no', false],
] as const)('a person who says %s decides on a call', async (decision, result, made) => {
  const started = await run('asks', { role: withApproval('edit') });

  const asked = await untilAsked(started);
  expect(asked).toMatchObject({
    kind: 'approval',
    calls: [{ call_id: 'call-1', tool: 'edit', arguments: expect.stringContaining('make it') }],
  });
  expect(await started.running.service.status(started.id)).toMatchObject({
    phase: 'awaiting_approval',
  });
  await respond(started, asked.input_id, decision);

  expect(await untilOver(started)).toMatchObject({ status: 'complete', result, attempt: 1 });
  expect(runsIn(started.running.root)).toHaveLength(1);
  expect(
    framesOf(started.running, started.id, 'tool_end').map(({ ok }: { ok: boolean }) => ok),
  ).toEqual([made]);
});

test('only calls that require_approval names wait for a person', async () => {
  const started = await run('asks', { role: withApproval('bash') });

  expect((await untilOver(started)).result).toBe('answered once');
});

test('two calls that are asked for at once are decided one after the other', async () => {
  const started = await run('asks_twice', { role: withApproval('edit', 'bash') });

  const first = await untilAsked(started);
  await respond(started, first.input_id, 'allow');
  const second = await untilAsked(started, first.input_id);
  await expect(respond(started, first.input_id, 'allow')).rejects.toThrow();
  await respond(started, second.input_id, 'deny');

  expect((await untilOver(started)).result).toBe('answered once no');
  expect(first.calls).toMatchObject([{ tool: 'edit' }]);
  expect(second.calls).toMatchObject([{ tool: 'bash' }]);
});

test('a wait for a person is no silence, and nobody is as good as no after its limit', {
  tags: ['slow'],
}, async () => {
  const started = await run('asks', {
    role: withApproval('edit'),
    options: { idleMs: 10_000, answerMs: 12_000, defaultDecision: 'deny' },
  });

  expect((await untilOver(started)).result).toBe('answered no');
});

test('a call that is made without asking fails the attempt', async () => {
  const started = await run('takes', { role: withApproval('bash') });

  expect((await untilOver(started)).error).toMatchObject({
    code: 'model_failed',
    message: expect.stringMatching(/it made a call \(bash\) without asking/),
  });
});

test('an agent that dies while a person decides withdraws its question', async () => {
  const started = await run('dies_while_asking', { role: withApproval('edit') });

  expect((await untilOver(started)).error).toMatchObject({
    message: expect.stringMatching(/exit code 3/),
  });
});

test('cancel ends an agent that waits for a person', async () => {
  const started = await run('asks', { role: withApproval('edit') });
  const { running, id } = started;
  await untilAsked(started);
  const mark = new RegExp(`\0ATS_ATTEMPT=${runsIn(running.root)[0]?.env['ATS_ATTEMPT']}\0`);
  expect(processesWith(mark)).not.toEqual([]);

  await running.service.cancel(id, null);
  await untilStatus(running, id, 'cancelled');

  expect(processesWith(mark)).toEqual([]);
});

test('an orderly stop ends an agent that waits; the answer goes to its session in a new process', async () => {
  const started = await run('asks', { role: withApproval('edit') });
  const { running, id } = started;
  const before = await untilAsked(started);
  const mark = new RegExp(`\0ATS_ATTEMPT=${runsIn(running.root)[0]?.env['ATS_ATTEMPT']}\0`);
  await running.stop();
  expect(processesWith(mark)).toEqual([]);

  const next = await startSystem({
    assistants: fakeAssistants({ acp: createAcp([fakeProgram('acp')], deadlines) }),
    sandbox,
    environment: { HOME: temporaryFolder() },
    role: withApproval('edit'),
    options: { backend: 'acp' },
    root: running.root,
    stateDir: running.stateDir,
  });
  const again = await untilAsked({ running: next, id });
  expect(again.input_id).toBe(before.input_id);
  await respond({ running: next, id }, again.input_id, 'allow');

  // The same call is not asked for twice.
  expect(await untilStatus(next, id, 'complete', 'failed')).toMatchObject({
    status: 'complete',
    result: 'answered once',
  });
  expect(runsIn(next.root).map((each) => each.id)).toEqual(['session-1', 'session-1']);
});

/** The fake by the name of a program whose usage we know. */
const named = (name: string): string => {
  const path = join(temporaryFolder(), name);
  symlinkSync(fakeProgram('acp'), path);
  return path;
};

test.each([
  ['gemini', { input_tokens: 300, output_tokens: 15, cached_tokens: 0 }],
  [
    'codex-acp',
    { input_tokens: 300, output_tokens: 15, cached_tokens: 90, cache_write_tokens: 10 },
  ],
  [
    'claude-agent-acp',
    {
      ...{ input_tokens: 300, output_tokens: 15, cached_tokens: 90, cache_write_tokens: 10 },
      cost_usd: 0.03,
    },
  ],
  ['opencode', { input_tokens: 0, tokens_unknown: true, cost_usd: 0.03 }],
  ['copilot', { input_tokens: 0, tokens_unknown: true }],
  ['my-agent', { input_tokens: 0, tokens_unknown: true }],
])('the usage of %s is counted by its meaning', async (name, usage) => {
  const acp = createAcp([named(name), 'x'], deadlines);
  const started = await run('well', { assistants: fakeAssistants({ acp }) });

  const view = await untilOver(started);

  expect(view).toMatchObject({ status: 'complete', usage });
  expect('tokens_unknown' in view.usage).toBe('tokens_unknown' in usage);
  const untold = { level: 'info', message: expect.stringMatching(/does not tell its tokens/) };
  const logs = framesOf(started.running, started.id, 'log');
  if ('tokens_unknown' in usage) expect(logs).toContainEqual(untold);
  else expect(logs).not.toContainEqual(untold);
});

test('tools of MCP servers are shown by name; usage that is not told, though it should be, is unknown', async () => {
  const acp = createAcp([named('codex-acp')], deadlines);
  const started = await run('calls_mcp', { assistants: fakeAssistants({ acp }) });

  const { usage } = await untilOver(started);

  const begun = framesOf(started.running, started.id, 'tool_start');
  expect(begun.map(({ tool }) => tool)).toEqual(['mcp__notes__add', 'notes_add', 'other']);
  expect(usage).toMatchObject({ input_tokens: 0, tokens_unknown: true });
});

test('an agent that would use MCP servers only with the settings of the project is said to use none', async () => {
  const acp = createAcp([named('gemini')], deadlines);
  const started = await run('well', {
    assistants: fakeAssistants({ acp }),
    role: { mcp: ['notes'] },
    options: { mcpServers: [stdioServer('notes')] },
  });
  await untilOver(started);

  expect(framesOf(started.running, started.id, 'log')).toContainEqual({
    level: 'warn',
    message: 'this agent does not use your MCP servers',
  });
});

test('usage and cost of a session that goes on are counted once', async () => {
  const acp = createAcp([named('claude-agent-acp')], deadlines);
  const verify = ['grep -q right made.txt || { echo it is wrong; exit 1; }'];
  const started = await run('well', { assistants: fakeAssistants({ acp }) }, { verify });

  // Tokens are told for each prompt, the cost for the session.
  expect((await untilOver(started)).usage).toMatchObject({
    input_tokens: 600,
    output_tokens: 30,
    cost_usd: 0.03,
  });
});

test.each([
  ['gemini', 'default'],
  ['codex-acp', 'workspace-write'],
])('the mode in which %s asks is chosen', async (name, modeId) => {
  const acp = createAcp([named(name)], deadlines);
  const started = await run('well', { assistants: fakeAssistants({ acp }) });
  await untilOver(started);

  expect(heardIn(started.running)).toContainEqual(
    expect.objectContaining({
      method: 'session/set_mode',
      params: { sessionId: 'session-1', modeId },
    }),
  );
});

test.each([
  ['repeat', true],
  ['ask', false],
] as const)('after a crash of the server its session goes on: %s', async (policy, byItself) => {
  const setting: Setting = {
    assistants: fakeAssistants({ acp: createAcp([fakeProgram('acp')], deadlines) }),
    sandbox,
    environment: { HOME: temporaryFolder() },
    options: { backend: 'acp', onInterrupted: policy },
  };
  const first = await startSystem(setting);
  const { task_id: id } = await first.service.create({ description: 'play: hang' });
  await first.service.execute({ task: id, role: 'engineer', options: {} });
  await vi.waitFor(() => expect(runsIn(first.root)).toHaveLength(1));
  await vi.waitFor(() =>
    expect(first.store.steps(id, 1).find(({ key }) => key === 'run:0')?.intent).toContain(
      'session-1',
    ),
  );
  const [root, stateDir] = [temporaryFolder(), temporaryFolder()];
  // The files as they are now, as after a kill -9.
  cpSync(first.root, root, { recursive: true });
  cpSync(first.stateDir, stateDir, { recursive: true });
  await first.stop();

  const next = await startSystem({ ...setting, root, stateDir });
  if (!byItself) {
    const asked = await untilAsked({ running: next, id });
    expect(asked.question).toMatch(/stopped while acp\.mjs was working.*session-1/);
    const response = { type: 'respond', inputId: asked.input_id, text: 'repeat', decision: null };
    await next.service.respond(id, 1, { ...response, type: 'respond' });
  }

  expect(await untilStatus(next, id, 'complete', 'failed')).toMatchObject({
    status: 'complete',
    result: 'made',
    attempt: 1,
  });
  expect(runsIn(root).map((each) => each.id)).toEqual(['session-1', 'session-1']);
  expect(runsIn(root)[1]?.prompt).toMatch(/^You were stopped/);
});

const rootWithPlugin = (): string => {
  const root = temporaryFolder();
  mkdirSync(join(root, '.opencode', 'plugin'), { recursive: true });
  writeFileSync(join(root, '.opencode', 'plugin', 'trap.js'), '');
  return root;
};

testUnless(noSandbox).each([
  ['opencode', 'hidden'],
  ['gemini', 'seen'],
])('the plugins of the project are for %s %s', async (name, result) => {
  const root = rootWithPlugin();
  const acp = createAcp([named(name)], deadlines);
  const started = await run('looks', { root, assistants: fakeAssistants({ acp }) });

  expect((await untilOver(started)).result).toBe(result);
  expect(readdirSync(join(root, '.opencode', 'plugin'))).toEqual(['trap.js']);
});

testUnless(noSandbox)('a link to plugins is refused', async () => {
  const root = temporaryFolder();
  symlinkSync(join(rootWithPlugin(), '.opencode'), join(root, '.opencode'));
  const acp = createAcp([named('opencode')], deadlines);
  const started = await run('looks', { root, assistants: fakeAssistants({ acp }) });

  expect((await untilOver(started)).error).toMatchObject({
    code: 'tool_failed',
    message: expect.stringMatching(/^\.opencode of the project is a link/),
  });
  expect(runsIn(root)).toEqual([]);
});
