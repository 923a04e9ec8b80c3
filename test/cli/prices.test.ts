import { expect, test } from 'vitest';
import { priceOf } from '../../src/actors/model/price-table.ts';
import { withChosenModel } from '../../src/cli/config/providers.ts';
import { configSchema } from '../../src/cli/config/schema/config-schema.ts';
import { settingsFrom } from '../../src/cli/config/settings.ts';
import { openProject, plain } from '../support/cli.ts';
import { temporaryFolder } from '../support/temporary.ts';

const settings = (given: object, env: NodeJS.ProcessEnv = { OPENAI_API_KEY: 'k' }) => {
  const loaded = {
    ...{ config: configSchema.parse(given), file: '', files: [], layers: [] },
    ...{ named: null, fileChosen: false, portChosen: false, policies: [], policyWarnings: [] },
  };
  return settingsFrom(withChosenModel(loaded, env), temporaryFolder());
};
const priced = (prices: object, name: string, env?: NodeJS.ProcessEnv, providers = {}) =>
  priceOf(settings({ api: { prices }, providers }, env), name);

test.each<[string, object, string, object]>([
  [
    'a part of it over the table',
    { 'gpt-5.1': { output_per_million: 7 } },
    'gpt-5.1',
    { input: 1.25, cachedInput: 0.125, output: 7 },
  ],
  [
    'the price of its cache over the table',
    { 'anthropic/claude-sonnet-4-5': { cached_input_per_million: 0.2 } },
    'anthropic/claude-sonnet-4-5',
    { input: 3, cachedInput: 0.2, cacheWrite: 3.75, output: 15 },
  ],
  [
    'a part of it for long contexts, too',
    { 'google/gemini-2.5-pro': { output_per_million: 9 } },
    'google/gemini-2.5-pro',
    { input: 1.25, output: 9, above: { tokens: 200_000, price: { input: 2.5, output: 9 } } },
  ],
  [
    'the whole of it, whatever the table says',
    { 'gpt-5.1': { input_per_million: 2, output_per_million: 7 } },
    'gpt-5.1',
    { input: 2, cachedInput: 2, output: 7 },
  ],
  [
    'the name after its provider',
    { 'openai/gpt-5.1': { output_per_million: 7 } },
    'gpt-5.1',
    { output: 7 },
  ],
  [
    'the name alone, which is one of the default provider',
    { 'gpt-5.1': { output_per_million: 7 } },
    'openai/gpt-5.1',
    { output: 7 },
  ],
  [
    'the name alone for no other provider',
    { 'gpt-5.1': { output_per_million: 7 } },
    'azure/gpt-5.1',
    { output: 10 },
  ],
])('a price is given by %s', (_, prices, name, expected) => {
  expect(priced(prices, name)).toMatchObject(expected);
});

test.each([
  ['ollama/qwen3:8b', {}],
  ['lmstudio/gemma', {}],
  ['vllm/qwen3', {}],
  ['ollama/qwen3', { ollama: { base_url: 'http://192.168.1.20:11434/v1' } }],
])('%s on a machine of the user costs nothing, with providers %j', (name, providers) => {
  expect(priced({}, name, {}, providers)).toEqual({ input: 0, cachedInput: 0, output: 0 });
  const set = { [name]: { input_per_million: 1, output_per_million: 2 } };
  expect(priced(set, name, {}, providers)).toMatchObject({ input: 1, output: 2 });
});

test.each([
  ['ollama/gpt-oss:120b-cloud', {}],
  ['ollama/glm-4.6:cloud', {}],
  ['ollama/qwen3', { ollama: { base_url: 'https://ollama.example.com/v1' } }],
  ['gateway/gpt-4o', { gateway: { base_url: 'http://127.0.0.1:4000/v1' } }],
])('the price of %s with providers %j is not known', (name, providers) => {
  expect(priced({}, name, {}, providers)).toBe(undefined);
});

test.each([
  ['our-5', { input_per_million: 1 }, 'output_per_million'],
  ['our-5', { cache_write_per_million: 1 }, 'input_per_million and output_per_million'],
  ['ollama/qwen3', { output_per_million: 1 }, 'input_per_million'],
])(
  'a part of the price of %s, which the table does not know, is refused',
  (name, price, missing) => {
    expect(() => priced({ [name]: price }, name)).toThrow(
      `api.prices.${name}: ${missing} is missing, and the price table does not know`,
    );
  },
);

test('a name alone is priced as that of the provider whose key is there', () => {
  const name = 'gpt-4o';

  expect(priced({}, name)).toMatchObject({ input: 2.5 });
  expect(priced({}, name, { ANTHROPIC_API_KEY: 'k' })).toBe(undefined);
  expect(priced({}, 'claude-sonnet-4-5', { ANTHROPIC_API_KEY: 'k' })).toMatchObject({ input: 3 });
});

test('doctor says of what the price is', async () => {
  const prices = { 'gpt-5.1': { output_per_million: 7 } };
  const { agentWith } = openProject({ ...plain, api: { backend: 'builtin', prices } });

  const { out } = await agentWith({ OPENAI_API_KEY: 'k' }, 'doctor', '--json');

  const { detail } = JSON.parse(out).checks.find((one: { check: string }) => one.check === 'price');
  expect(detail).toMatch(
    /^gpt-5\.1: \$1\.25 in, \$7 out for a million tokens, by api\.prices over @pydantic\/genai-prices/,
  );
});
