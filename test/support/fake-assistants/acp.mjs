#!/usr/bin/env node
// Speaks the Agent Client Protocol, well and badly: the task's description says how
// (`play: hang`), or an argument for what comes before the prompt (`--no-resume`). Every prompt is
// written down in `runs.jsonl`, every message that it gets in `heard.jsonl`.
import { spawn } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { imagesIn } from './kit.mjs';

const flags = process.argv.slice(2);
const has = (flag) => flags.includes(`--${flag}`);
const forever = () => new Promise(() => setInterval(() => {}, 60_000));
const raw = (text) => new Promise((resolve) => process.stdout.write(text, resolve));
const say = (message) => raw(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const sessions = () => {
  try {
    return JSON.parse(readFileSync('sessions.json', 'utf8'));
  } catch {
    return {};
  }
};

let session = '';
let lastId = 0;
const asked = new Map();
const ask = (method, params) => {
  const id = `mine-${++lastId}`;
  return new Promise((resolve) => {
    asked.set(id, resolve);
    void say({ id, method, params });
  });
};
const update = (sessionUpdate, more) =>
  say({
    method: 'session/update',
    params: { sessionId: session, update: { sessionUpdate, ...more } },
  });
const text = (words) => update('agent_message_chunk', { content: { type: 'text', text: words } });
const words = async (all) => {
  for (const word of all.split(/(?<= )/)) await text(word);
};
let calls = 0;
const begin = async (kind, more = {}) => {
  const toolCallId = `call-${++calls}`;
  await update('tool_call', { toolCallId, title: `${kind} it`, kind, status: 'pending', ...more });
  return toolCallId;
};
const finish = (toolCallId, output, more = {}) =>
  update('tool_call_update', {
    toolCallId,
    status: 'completed',
    content: [{ type: 'content', content: { type: 'text', text: output } }],
    ...more,
  });
const tool = async (kind, output, more = {}) => {
  const toolCallId = await begin(kind, { rawInput: { command: `make it` }, ...more });
  await update('tool_call_update', { toolCallId, status: 'in_progress' });
  await finish(toolCallId, output);
};
const permission = (toolCallId, kind, more = {}) =>
  ask('session/request_permission', {
    sessionId: session,
    toolCall: { toolCallId, title: `${kind} it`, kind, rawInput: { command: 'make it' } },
    options: [
      { optionId: 'always', name: 'Always', kind: 'allow_always' },
      { optionId: 'once', name: 'Once', kind: 'allow_once' },
      { optionId: 'no', name: 'No', kind: 'reject_once' },
    ],
    ...more,
  });

const usage = { inputTokens: 200, outputTokens: 15, cachedReadTokens: 90, cachedWriteTokens: 10 };
const ended = (more = {}) => ({
  stopReason: 'end_turn',
  usage,
  _meta: { quota: { token_count: { input_tokens: 300, output_tokens: 15 } } },
  ...more,
});
const cost = (amount) =>
  update('usage_update', { used: 1_000, size: 200_000, cost: { amount, currency: 'USD' } });

/** Answers a permission with what it did. */
const onlyIfAllowed = async (kind = 'edit') => {
  const toolCallId = await begin(kind);
  const { outcome } = await permission(toolCallId, kind);
  const isAllowed = outcome?.optionId === 'once';
  if (isAllowed) {
    writeFileSync('made.txt', 'first');
    await finish(toolCallId, 'made it');
  } else await update('tool_call_update', { toolCallId, status: 'failed' });
  return outcome?.optionId ?? outcome?.outcome ?? 'nothing';
};

let cancelled = () => {};
const untilCancelled = new Promise((resolve) => {
  cancelled = resolve;
});

const plays = {
  well: async ({ prompt }) => {
    const isSentBack = prompt.includes('not accepted yet');
    await update('agent_thought_chunk', { content: { type: 'text', text: 'hm' } });
    await update('plan', {
      entries: [
        { content: 'make it', priority: 'high', status: 'in_progress' },
        { content: 'check it', priority: 'low', status: 'pending' },
      ],
    });
    await words('I begin ☃.');
    await tool('execute', 'made it');
    const id = await begin('edit', { locations: [{ path: `${process.cwd()}/made.txt` }] });
    writeFileSync('made.txt', isSentBack ? 'right' : 'first');
    await finish(id, 'written');
    await cost(0.03);
    await words(isSentBack ? 'mended' : 'made');
    return ended();
  },
  sees: async ({ prompt }) => {
    await words(`I see ${imagesIn(prompt)}`);
    return ended();
  },
  calls_mcp: async () => {
    const rawInput = { server: 'notes', tool: 'add', arguments: {} };
    await finish(await begin('execute', { title: 'mcp.notes.add', rawInput }), 'noted');
    await finish(await begin('other', { title: 'notes_add' }), 'noted');
    await finish(await begin('other', { title: 'Two words' }), 'noted');
    await words('noted');
    return { stopReason: 'end_turn' };
  },
  asks: async () => {
    const outcome = await onlyIfAllowed();
    await words(`answered ${outcome}`);
    return ended();
  },
  asks_twice: async () => {
    const outcomes = await Promise.all([onlyIfAllowed('edit'), onlyIfAllowed('execute')]);
    await words(`answered ${outcomes.join(' ')}`);
    return ended();
  },
  asks_for_ever: async () => {
    const toolCallId = await begin('edit');
    const options = [{ optionId: 'always', name: 'Always', kind: 'allow_always' }];
    const { outcome } = await permission(toolCallId, 'edit', { options });
    await words(`answered ${outcome?.optionId ?? outcome?.outcome}`);
    return ended();
  },
  takes: async () => {
    await tool('execute', 'made it without asking');
    await words('made');
    return ended();
  },
  dies_while_asking: async () => {
    void permission(await begin('edit'), 'edit');
    setTimeout(() => process.exit(3), 100);
    return forever();
  },
  fails: async () => {
    const error = { type: 'invalid_request_error', message: 'no such model' };
    throw {
      code: -32_603,
      message: 'Internal error',
      data: { details: JSON.stringify({ error }) },
    };
  },
  busy: async () => {
    throw { code: 429, message: 'Rate limit exceeded. Try again later.' };
  },
  overloaded: async () => {
    throw { code: 529, message: 'Overloaded' };
  },
  limit_as_text: async () => {
    await text('Error: 429 Rate limit reached for m. Please try again in 2.5s.');
    return { stopReason: 'end_turn' };
  },
  error_as_text: async () => {
    await tool('execute', 'made it');
    await text('Error: 500 the model is away');
    return { stopReason: 'end_turn' };
  },
  // As copilot 1.0.102 does, which retries before.
  error_after_text: async () => {
    await text('Info: Response was interrupted due to a server error. Retrying...');
    await text('Error: Failed to get response from the AI model; retried 5 times');
    return { stopReason: 'end_turn' };
  },
  quotes_an_error: async () => {
    await words('The server no longer says "Error: 429 Too many requests" to its users.');
    return ended();
  },
  // As codex-acp 2.6.0 does.
  thread_fails: async () => {
    const info = (codex) => update('session_info_update', { _meta: { codex } });
    await words('Warning: the model is not known.');
    await info({ threadStatus: { type: 'active', activeFlags: [] } });
    const additionalDetails = 'unexpected status 500 Internal Server Error';
    await info({ error: { message: 'Reconnecting... 1/1', additionalDetails, willRetry: true } });
    await info({ threadStatus: { type: 'systemError' } });
    if (!has('wordless')) await text('exceeded retry limit, last status: 500 Internal\n\n');
    return { stopReason: 'end_turn', usage: null };
  },
  thread_recovers: async () => {
    const info = (codex) => update('session_info_update', { _meta: { codex } });
    await info({ threadStatus: { type: 'systemError' } });
    await info({ threadStatus: { type: 'active', activeFlags: [] } });
    await words('made');
    return ended();
  },
  limited: async () => {
    throw { code: -32_603, message: "You've hit your usage limit. Try again in 3 seconds." };
  },
  gives_up: async () => {
    await words('FAILED: the file is not there');
    return ended();
  },
  silent: async () => ended(),
  looks: async () => {
    await words(existsSync('.opencode/plugin/trap.js') ? 'seen' : 'hidden');
    return ended();
  },
  refuses: async () => ended({ stopReason: 'refusal' }),
  cut: async () => ended({ stopReason: 'max_tokens' }),
  surprises: async () => ended({ stopReason: 'surprise' }),
  hang: async () => {
    await words('I begin.');
    await untilCancelled;
    return ended({ stopReason: 'cancelled' });
  },
  stubborn: async () => {
    process.on('SIGTERM', () => {});
    return forever();
  },
  daemon: async () => {
    const script = "process.on('SIGTERM', () => {}); setInterval(() => {}, 1_000)";
    const child = spawn(process.execPath, ['-e', script], { detached: true, stdio: 'ignore' });
    child.unref();
    writeFileSync('daemon', String(child.pid));
    return forever();
  },
  dies: async () => {
    process.stderr.write('something\nthe last words\n');
    process.exit(3);
  },
  lingers: async () => {
    setInterval(() => {}, 60_000);
    await words('here it is');
    return ended();
  },
  one_long_line: async () => {
    const piece = 'x'.repeat(1024 * 1024);
    for (let written = 0; written < 12; written += 1) await raw(piece);
    await raw('\n');
    await words('after it');
    return ended();
  },
  flood: async () => {
    const many = `${JSON.stringify({
      jsonrpc: '2.0',
      method: 'session/update',
      params: {
        sessionId: session,
        update: {
          sessionUpdate: 'agent_message_chunk',
          content: { type: 'text', text: 'y'.repeat(1_000) },
        },
      },
    })}\n`.repeat(200);
    for (;;) await raw(many);
  },
  flood_of_requests: async () => {
    const many = `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'fs/read_text_file' })}\n`;
    for (;;) await raw(many.repeat(1_000));
  },
  flood_of_calls: async () => {
    for (let count = 0; count < 3_000; count += 1) await begin('read', { status: 'in_progress' });
    await words('made');
    return ended();
  },
  nonsense: async () => {
    await raw(
      'Warning: this is no JSON\n{"jsonrpc":\n[]\nnull\n{"id":{}}\n{"id":999,"result":1}\n',
    );
    await update('surprise', {});
    await update('tool_call', { toolCallId: 7 });
    await say({ method: 'session/update', params: null });
    await say({ method: '_auth/status_update', params: {} });
    await words('all the same');
    return ended();
  },
  unknown_methods: async () => {
    const params = { sessionId: session, path: '/etc/passwd' };
    const answers = await Promise.all([
      ask('fs/read_text_file', params),
      ask('terminal/create', { ...params, command: 'id' }),
      ask('session/request_permission', { sessionId: 'other', toolCall: {}, options: [] }),
    ]);
    await words(answers.map((each) => each.code ?? each.outcome?.outcome).join(' '));
    return ended();
  },
  answers_twice: async (_, id) => {
    await words('once');
    await say({ id, result: ended() });
    await text(' and again');
    return ended({ stopReason: 'refusal' });
  },
};

const prompt = async ({ prompt: [{ text: given }] }, id) => {
  const known = sessions();
  const isNew = known[session]?.play === undefined;
  const name = isNew ? (/play: (\w+)/.exec(given)?.[1] ?? 'well') : known[session].play;
  writeFileSync('sessions.json', JSON.stringify({ ...known, [session]: { play: name } }));
  appendFileSync(
    'runs.jsonl',
    `${JSON.stringify({ argv: flags, prompt: given, env: process.env, id: session })}\n`,
  );
  // The second run of what hung, or met a limit, goes well.
  const again = !isNew && ['hang', 'stubborn', 'daemon', 'limited', 'limit_as_text'].includes(name);
  return plays[again ? 'well' : name]({ prompt: given }, id);
};

const methods = {
  initialize: async () => {
    if (has('mute')) return forever();
    return {
      protocolVersion: has('newer') ? 2 : 1,
      agentCapabilities: {
        loadSession: !has('no-resume'),
        promptCapabilities: { image: !has('blind') },
        sessionCapabilities: has('load') || has('no-resume') ? {} : { resume: {} },
      },
      agentInfo: { name: 'fake', version: '1' },
    };
  },
  'session/new': async () => {
    if (has('logged-out')) throw { code: -32_000, message: 'Authentication required' };
    const known = sessions();
    session = `session-${Object.keys(known).length + 1}`;
    writeFileSync('sessions.json', JSON.stringify({ ...known, [session]: {} }));
    return {
      sessionId: session,
      modes: {
        currentModeId: 'auto',
        availableModes: ['auto', 'default', 'workspace-write'].map((id) => ({ id })),
      },
      configOptions: [
        { id: 'model', category: 'model', options: [{ value: 'large' }, { value: 'small' }] },
      ],
    };
  },
  'session/resume': async ({ sessionId }) => {
    if (has('load') || sessions()[sessionId] === undefined)
      throw { code: -32_002, message: 'gone' };
    session = sessionId;
    return {};
  },
  'session/load': async ({ sessionId }) => {
    if (has('forgets')) throw { code: -32_002, message: 'Resource not found' };
    session = sessionId;
    await text('what was said before');
    await update('tool_call', { toolCallId: 'old', title: 'old', status: 'completed' });
    return null;
  },
  'session/set_mode': async () => ({}),
  'session/set_config_option': async () => ({ configOptions: [] }),
  'session/prompt': prompt,
};

createInterface({ input: process.stdin })
  .on('line', async (line) => {
    const { id, method, params, result, error } = JSON.parse(line);
    appendFileSync('heard.jsonl', `${line}\n`);
    if (method === undefined) return asked.get(id)?.(result ?? error);
    if (method === 'session/cancel') return cancelled();
    try {
      await say({ id, result: await methods[method](params, id) });
    } catch (problem) {
      await say({ id, error: problem });
    }
  })
  .on('close', () => {
    if (process.listenerCount('SIGTERM') === 0 && !has('stays')) process.exitCode = 0;
  });
