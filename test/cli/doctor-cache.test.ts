import { expect, test } from 'vitest';
import { openProject, plain } from '../support/cli.ts';
import { startModelServer } from '../support/model-server.ts';

const turnsOf = async (
  usage: { readonly input: number; readonly cached: (turn: number) => number },
  { turns = 11, cache = 'auto' }: { turns?: number; cache?: string } = {},
) => {
  const provider = await startModelServer((_, number) => ({
    kind: 'answer',
    text: `turn ${number}`,
    calls:
      number < turns
        ? [{ id: `c${number}`, name: 'bash', arguments: `{"command":"echo ${number}"}` }]
        : [{ id: 'end', name: 'finish', arguments: '{"status":"done","summary":"fine"}' }],
    usage: {
      ...{ prompt_tokens: usage.input, completion_tokens: 5 },
      prompt_tokens_details: { cached_tokens: usage.cached(number) },
    },
  }));
  const project = openProject({ ...plain, providers: { anthropic: { cache } } });
  const env = { ANTHROPIC_API_KEY: 'sk-cache-0123456789', ANTHROPIC_BASE_URL: provider.origin };
  const ran = await project.agentWith(env, 'engineer', 'Do it now');
  expect(ran.code, ran.out + ran.err).toBe(0);
  const { out } = await project.agentWith(env, 'doctor', '--json');
  return JSON.parse(out).checks.filter((one: { check: string }) => one.check === 'cache');
};
const never = () => 0;

test('doctor warns of a model whose last ten turns read nothing from a cache', async () => {
  expect(await turnsOf({ input: 5_000, cached: never })).toEqual([
    {
      check: 'cache',
      status: 'note',
      detail: expect.stringMatching(
        /^anthropic\/claude-sonnet-4-5: its last 10 turns read nothing .* \$3 and not \$0\.3 /,
      ),
    },
  ]);
});

test.each<[string, ...Parameters<typeof turnsOf>]>([
  ['that read once', { input: 5_000, cached: (turn) => (turn === 6 ? 4_500 : 0) }],
  ['that are too short', { input: 4_000, cached: never }],
  ['that are fewer than ten after the first', { input: 5_000, cached: never }, { turns: 10 }],
  ['of a provider whose cache is off', { input: 5_000, cached: never }, { cache: 'off' }],
])('and says nothing of turns %s', async (_, usage, more) => {
  expect(await turnsOf(usage, more)).toEqual([]);
});
