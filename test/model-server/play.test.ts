import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createOpenAiModel } from '../../src/actors/model/openai/openai.ts';
import type { Model } from '../../src/actors/model/port.ts';
import { parseScript } from '../../src/actors/model/script.ts';
import { createScriptedModel } from '../../src/actors/model/scripted.ts';
import { shippedRoles } from '../../src/cli/roles/read-project-roles.ts';
import { type Role, roles } from '../../src/machines/task.ts';
import { startModelServer } from '../support/model-server.ts';
import { startSystem, untilStatus } from '../support/running.ts';
import type { Answer, Fault } from './answer.ts';
import { play } from './play.mjs';

const protocols = ['chat', 'responses'] as const;

/**
 * Every feature of a script: several calls in a turn, what follows a failure, the last output, a
 * text with characters outside of the first plane.
 */
const script = parseScript({
  scripts: [
    { role: 'tester', turns: [] },
    { title: 'other', turns: [] },
    {
      role: 'engineer',
      title: 'the sum',
      turns: [
        {
          say: 'Two files \u{1F600} and a command.',
          calls: [
            { tool: 'write', arguments: { path: 'a.txt', content: 'a "quoted" line\n' } },
            { tool: 'bash', arguments: { command: 'cat a.txt; exit 3' } },
          ],
        },
        {
          say: 'never said',
          calls: [
            {
              tool: 'finish',
              arguments: { status: 'failed', summary: 'the failure was not noticed' },
            },
          ],
          otherwise: { calls: [{ tool: 'bash', arguments: { command: 'echo mended' } }] },
        },
        {
          calls: [
            { tool: 'finish', arguments: { status: 'done', summary: 'it said: {{last_output}}' } },
          ],
        },
      ],
    },
  ],
});

const overHttp = async (
  protocol: (typeof protocols)[number],
  faultAt: Readonly<Record<number, Answer>> = {},
) => {
  const answer = play(createScriptedModel(script));
  const provider = await startModelServer((seen, number) => faultAt[number] ?? answer(seen));
  const timeouts = {
    connectMs: 3_000,
    firstByteMs: 3_000,
    idleMs: 3_000,
    progressMs: 3_000,
    turnMs: 20_000,
  };
  return {
    provider,
    model: createOpenAiModel({ protocol, apiKey: 'k', baseURL: provider.baseURL, timeouts }),
  };
};

/** What a model does to a task: its calls, what it said in the end, and how it ended. */
const played = async (model: Model) => {
  const running = await startSystem({ model, options: { maxModelRetries: 2 } });
  const { task_id } = await running.service.create({ description: 'Mend the sum' });
  await running.service.execute({ task: task_id, role: 'engineer', options: {} });
  const { status, result, usage } = await untilStatus(running, task_id, 'complete', 'failed');
  const entries = running.store.read({ taskId: task_id, after: 0, limit: 1_000 });
  const calls = entries
    .filter(({ type }) => type === 'tool_start')
    .map(({ data }) => JSON.parse(data));
  const results = readFileSync(
    join(running.root, '.beads', 'tasks', `task-${task_id}`, '30-results.md'),
    'utf8',
  );
  return {
    status,
    result,
    usage,
    results,
    calls: calls.map(({ tool, arguments: text }) => [tool, tool === 'finish' ? '' : text]),
  };
};

test.each(protocols)(
  'the model server plays a script over %s as the built-in model does',
  async (protocol) => {
    const { model, provider } = await overHttp(protocol);

    const near = await played(createScriptedModel(script));
    const far = await played(model);

    expect(far.calls).toEqual(near.calls);
    expect(far.status).toBe('complete');
    expect(near.result).toBe('it said: mended\n[exit code 0]');
    expect(far.result).toBe(
      `${near.result}\n\nPlayed by the scripted model: no language model was called.`,
    );
    expect(far.results).toContain('no language model was called');
    expect(provider.requests.map(({ path }) => path)).toEqual(
      Array.from({ length: 3 }, () =>
        protocol === 'chat' ? '/v1/chat/completions' : '/v1/responses',
      ),
    );
    expect(far.usage.input_tokens).toBeGreaterThan(100);
  },
);

const faults: readonly Fault[] = [
  ...([
    'silence',
    'headers_only',
    'comments_only',
    'stall',
    'reset',
    'cut',
    'half_event',
    'bad_json',
  ] as const),
  ...(['html', 'empty'] as const),
];
const injected: readonly Answer[] = [
  ...faults.map((kind) => ({ kind })),
  { kind: 'status', status: 503, headers: { 'retry-after': '0' } },
  ...(['nested', 'flat', 'failed'] as const).map((as) => ({ kind: 'error_event' as const, as })),
];

for (const protocol of protocols)
  test(`a script continues over ${protocol} after every fault`, {
    tags: ['slow'],
  }, async () => {
    const ends = await Promise.all(
      injected.map(async (fault) => {
        const { model, provider } = await overHttp(protocol, { 2: fault });
        const { status, result, usage } = await played(model);
        return { fault, status, result, turns: usage.turns, calls: provider.requests.length };
      }),
    );

    const result =
      'it said: mended\n[exit code 0]\n\nPlayed by the scripted model: no language model was called.';
    expect(ends).toEqual(
      injected.map((fault) => ({ fault, status: 'complete', result, turns: 3, calls: 4 })),
    );
  });

test.each(roles)('the role %s is read from its prompt', async (role: Role) => {
  const turns = (text: string) => [{ say: text, calls: [] }];
  const scripts = [...roles].map((each) => ({
    role: each,
    title: 'A title',
    turns: turns(`I am the ${each}`),
  }));
  const provider = await startModelServer(play(createScriptedModel(parseScript({ scripts }))));

  const response = await fetch(`${provider.baseURL}/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({
      messages: [
        { role: 'system', content: shippedRoles()[role].prompt },
        { role: 'user', content: 'Do this task.\n\n# bd-1: A title\n\nmore' },
      ],
    }),
  });

  const said = [...(await response.text()).matchAll(/"content":"([^"]*)"/g)]
    .map(([, text]) => text)
    .join('');
  expect(said).toBe(`I am the ${role}`);
});
