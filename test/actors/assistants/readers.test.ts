import { expect, test } from 'vitest';
import { createClaude } from '../../../src/actors/assistants/claude.ts';
import { createCodex } from '../../../src/actors/assistants/codex.ts';
import { createCommandAssistant } from '../../../src/actors/assistants/command.ts';
import { createLineSplitter } from '../../../src/actors/process/line-splitter.ts';

const start = {
  model: null,
  session: null,
  promptFile: '/p',
  taskId: 'bd-a1',
  role: 'engineer',
  moneyLeftUsd: null,
};

// Lines as the real programs wrote them (codex 0.169, claude 2.1.329), without what nobody reads.
test.each<[string, object, readonly object[]]>([
  [
    'a thread',
    { type: 'thread.started', thread_id: '01a1-7c' },
    [{ type: 'session', id: '01a1-7c' }],
  ],
  ['an id that could be an option', { type: 'thread.started', thread_id: '--yolo' }, []],
  [
    'a command that begins',
    {
      type: 'item.started',
      item: { id: 'item_3', type: 'command_execution', command: 'ls', exit_code: null },
    },
    [{ type: 'tool_started', callId: 'item_3', tool: 'command', arguments: '{"command":"ls"}' }],
  ],
  [
    'a command that failed',
    {
      type: 'item.completed',
      item: {
        id: 'item_3',
        type: 'command_execution',
        command: 'ls',
        aggregated_output: 'no',
        exit_code: 2,
        status: 'failed',
      },
    },
    [
      { type: 'tool_ended', callId: 'item_3', ok: false, output: 'no' },
      { type: 'command', problem: null },
    ],
  ],
  [
    'files that changed, but not one that is gone',
    {
      type: 'item.completed',
      item: {
        id: 'item_4',
        type: 'file_change',
        changes: [
          { path: '/w/a', kind: 'add' },
          { path: '/w/b', kind: 'delete' },
        ],
        status: 'completed',
      },
    },
    [
      { type: 'tool_ended', callId: 'item_4', ok: true, output: '' },
      { type: 'changed', path: '/w/a' },
    ],
  ],
  [
    'a try that is made again, which is no failure yet',
    { type: 'error', message: 'Reconnecting... 1/5 (unexpected status 401)' },
    [{ type: 'note', level: 'warn', message: 'Reconnecting... 1/5 (unexpected status 401)' }],
  ],
  [
    'a turn that failed in a way that may pass',
    {
      type: 'turn.failed',
      error: { message: 'exceeded retry limit, last status: 429 Too Many Requests' },
    },
    [
      {
        type: 'failed',
        code: 'model_failed',
        message: 'exceeded retry limit, last status: 429 Too Many Requests',
        retryable: true,
      },
    ],
  ],
  [
    'the end of a turn',
    {
      type: 'turn.completed',
      usage: {
        ...{ input_tokens: 300, cached_input_tokens: 20, cache_write_input_tokens: 5 },
        output_tokens: 10,
      },
    },
    [
      { type: 'result', text: null },
      {
        type: 'used',
        since: 'session',
        used: { inputTokens: 300, outputTokens: 10, cachedTokens: 20, cacheWriteTokens: 5 },
      },
    ],
  ],
  [
    'a thought',
    { type: 'item.completed', item: { id: 'item_1', type: 'reasoning', text: 'hm' } },
    [],
  ],
  ['something new', { type: 'surprise', item: {} }, []],
])('codex: %s', (_, line, expected) => {
  expect(createCodex().read(JSON.stringify(line))).toEqual(expected);
});

const usage = {
  input_tokens: 100,
  cache_read_input_tokens: 10,
  cache_creation_input_tokens: 7,
  output_tokens: 1,
};
const used = { inputTokens: 117, outputTokens: 1, cachedTokens: 10, cacheWriteTokens: 7 };
const toolUse = {
  type: 'tool_use',
  id: 'toolu_1',
  name: 'Write',
  input: { file_path: '/w/made.txt' },
};

test.each<[string, object, readonly object[]]>([
  [
    'a rate limit of claude, of which an older version tells the kind alone',
    {
      type: 'assistant',
      message: { id: 'm', content: [{ type: 'text', text: 'wait' }] },
      error: 'rate_limit',
    },
    [
      { type: 'text', text: 'wait' },
      { type: 'limited', resetsAt: null },
    ],
  ],
  [
    'the beginning',
    { type: 'system', subtype: 'init', session_id: '1111-4' },
    [{ type: 'session', id: '1111-4' }],
  ],
  [
    'another word of the system',
    { type: 'system', subtype: 'compact_boundary', session_id: '1111-4' },
    [],
  ],
  [
    'a file that it writes',
    {
      type: 'assistant',
      message: { id: 'msg_1', content: [toolUse], usage },
      parent_tool_use_id: null,
    },
    [
      { type: 'called', id: 'msg_1', used },
      {
        type: 'tool_started',
        callId: 'toolu_1',
        tool: 'Write',
        arguments: '{"file_path":"/w/made.txt"}',
      },
      { type: 'changed', path: '/w/made.txt' },
    ],
  ],
  [
    'the text of an agent of its own, which is not what it says itself',
    {
      type: 'assistant',
      message: { id: 'msg_2', content: [{ type: 'text', text: 'psst' }], usage },
      parent_tool_use_id: 'toolu_9',
    },
    [{ type: 'called', id: 'msg_2', used }],
  ],
  [
    'a result in parts',
    {
      type: 'user',
      message: {
        content: [
          {
            type: 'tool_result',
            tool_use_id: 'toolu_1',
            content: [{ text: 'a' }, { text: 'b' }],
            is_error: true,
          },
        ],
      },
    },
    [{ type: 'tool_ended', callId: 'toolu_1', ok: false, output: 'a\nb' }],
  ],
  ['words of a person', { type: 'user', message: { content: 'hello' } }, []],
  [
    'the end',
    {
      type: 'result',
      subtype: 'success',
      is_error: false,
      result: 'All done',
      total_cost_usd: 0.001454,
      usage,
    },
    [
      { type: 'result', text: 'All done' },
      { type: 'used', since: 'run', used },
      { type: 'cost_so_far', usd: 0.001454, inputTokens: null },
    ],
  ],
  [
    'its limit of cost',
    {
      type: 'result',
      subtype: 'error_max_budget_usd',
      is_error: true,
      errors: ['Reached maximum budget ($0.002)'],
    },
    [
      {
        type: 'failed',
        code: 'budget_exceeded',
        message: 'Reached maximum budget ($0.002)',
        retryable: false,
      },
    ],
  ],
  [
    'a session that is gone',
    {
      type: 'result',
      subtype: 'error_during_execution',
      is_error: true,
      errors: ['No conversation found'],
    },
    [{ type: 'failed', code: 'model_failed', message: 'No conversation found', retryable: false }],
  ],
])('claude: %s', (_, line, expected) => {
  expect(createClaude().read(JSON.stringify(line))).toEqual(expected);
});

test.each([
  '',
  'null',
  '[]',
  '{"type":',
  '{"type":"assistant","message":7}',
  '{"type":"item.completed"}',
  '\0',
])('no line makes a reader throw: %j', (line) => {
  expect([...createCodex().read(line), ...createClaude().read(line)]).toEqual([]);
});

test("claude resumes a session with the rest of the budget, and reads only the user's settings", () => {
  const argv = createClaude({ args: ['--allowedTools', 'Bash'] }).argv({
    ...start,
    session: '1111-4',
    model: 'opus',
    moneyLeftUsd: 0.5,
  });

  expect(argv.join(' ')).toBe(
    'claude -p --output-format stream-json --verbose --permission-mode acceptEdits --setting-sources user --strict-mcp-config --model=opus --max-budget-usd 0.5 --allowedTools Bash --resume 1111-4',
  );
});

test("a resumed session of codex keeps its sandbox and the user's arguments", () => {
  const argv = createCodex({ path: '/opt/codex', args: ['-c', 'x=1'] }).argv({
    ...start,
    session: '01a1',
  });

  expect(argv).toEqual(expect.arrayContaining(['--sandbox', 'workspace-write', '-c', 'x=1']));
  expect([argv[0], ...argv.slice(-3)]).toEqual(['/opt/codex', 'resume', '01a1', '-']);
});

test.each([
  [[], 1],
  [['--sandbox', 'read-only'], 1],
  [['--sandbox=read-only'], 0],
  [['--dangerously-bypass-approvals-and-sandbox'], 0],
])('a sandbox of codex that the user chooses is passed once: %j', (args, count) => {
  expect(
    createCodex({ args })
      .argv(start)
      .filter((arg) => arg === '--sandbox'),
  ).toHaveLength(count);
});

test('a model name of a caller never becomes an option', () => {
  const model = '--dangerously-skip-permissions';
  const argvs = [
    createCodex(),
    createClaude(),
    createCommandAssistant(['my-agent', '{model}', '{task_id}']),
  ].map((assistant) => assistant.argv({ ...start, model }));

  expect(argvs.flat()).not.toContain(model);
  expect(argvs[2]).toEqual(['my-agent', 'dangerously-skip-permissions', 'bd-a1']);
});

test('only a line feed ends a line, and a line that is too long is left out', () => {
  const [seen, dropped]: [string[], number[]] = [[], []];
  const lines = createLineSplitter({
    longest: 10,
    onLine: (line) => seen.push(line),
    onDropped: () => dropped.push(seen.length),
  });

  for (const piece of ['a\u2028b', '\r\n\n  \nc', 'd\n', 'x'.repeat(9), 'yy', 'zz\ne\nf'])
    lines.push(piece);
  lines.end();

  expect(seen).toEqual(['a\u2028b', 'cd', 'e', 'f']);
  expect(dropped).toEqual([2]);
});

test('images come to codex as arguments at the start of a session, and claude may read their folder', () => {
  const image = { digest: 'a', mediaType: 'image/png', data: '' } as const;
  const images = [
    { ...image, path: '/t/images/image-1.png' },
    { ...image, path: '/t/images/image-2.webp' },
  ];

  const codex = createCodex().argv({ ...start, images });
  expect(codex.slice(-3)).toEqual([
    '--image=/t/images/image-1.png',
    '--image=/t/images/image-2.webp',
    '-',
  ]);
  expect(
    createCodex()
      .argv({ ...start, session: 's', images })
      .join(' '),
  ).not.toContain('--image');
  expect(createClaude().argv({ ...start, images })).toContain('--add-dir=/t/images');
  expect(createClaude().argv(start).join(' ')).not.toContain('--add-dir');
});
