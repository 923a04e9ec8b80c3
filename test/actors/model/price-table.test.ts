import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { costOf } from '../../../src/actors/model/price.ts';
import { priceTable, tablePrice } from '../../../src/actors/model/price-table.ts';

const openAi = 'https://api.openai.com/v1';
const anthropic = 'https://api.anthropic.com/v1';
const google = 'https://generativelanguage.googleapis.com/v1beta/openai';

/**
 * 100,000 tokens in, 40,000 of them cached and with Anthropic 10,000 written to the cache, and 2,000
 * out, by the list prices that the providers published on their pages of prices in November 2025
 * (openai.com/api/pricing, claude.com/pricing, ai.google.dev/pricing, x.ai/api, groq.com/pricing,
 * mistral.ai/pricing).
 */
const usage = { inputTokens: 100_000, outputTokens: 2_000, cachedTokens: 40_000 };

test.each([
  // in, cached and out for a million
  [openAi, 'gpt-4o', 0.22], // 2.50, 1.25, 10
  [openAi, 'gpt-4o-mini', 0.0132], // 0.15, 0.075, 0.60
  [openAi, 'gpt-4.1', 0.156], // 2, 0.50, 8
  [openAi, 'gpt-4.1-mini', 0.0312], // 0.40, 0.10, 1.60
  [openAi, 'gpt-4.1-nano', 0.0078], // 0.10, 0.025, 0.40
  [openAi, 'o1', 1.32], // 15, 7.50, 60
  [openAi, 'o3', 0.156], // 2, 0.50, 8
  [openAi, 'o3-mini', 0.0968], // 1.10, 0.55, 4.40
  [openAi, 'o4-mini', 0.0858], // 1.10, 0.275, 4.40
  [openAi, 'gpt-5', 0.1], // 1.25, 0.125, 10
  [openAi, 'gpt-5-mini', 0.02], // 0.25, 0.025, 2
  [google, 'gemini-2.0-flash', 0.0078], // 0.10, 0.025, 0.40
  [google, 'gemini-2.5-flash', 0.0242], // 0.30, 0.03, 2.50
  [google, 'gemini-2.5-pro', 0.1], // 1.25, 0.125, 10
  ['https://api.x.ai/v1', 'grok-3', 0.24], // 3, 0.75, 15
  ['https://api.x.ai/v1', 'grok-4', 0.24], // 3, 0.75, 15
  // No price of their own for cached tokens: in, out
  ['https://api.groq.com/openai/v1', 'llama-3.3-70b-versatile', 0.06058], // 0.59, 0.79
  ['https://api.mistral.ai/v1', 'codestral-latest', 0.0318], // 0.30, 0.90
])('at %s a call of %s costs %d USD', (url, model, usd) => {
  expect(costOf(tablePrice(model, url), usage)).toBeCloseTo(usd, 10);
});

test.each([
  // in, cached, written and out for a million
  ['claude-3-5-haiku-20241022', 0.0612], // 0.80, 0.08, 1, 4
  ['claude-haiku-4-5', 0.0765], // 1, 0.10, 1.25, 5
  ['claude-sonnet-4-20250514', 0.2295], // 3, 0.30, 3.75, 15
  ['claude-sonnet-4-5', 0.2295], // 3, 0.30, 3.75, 15
  ['claude-opus-4-20250514', 1.1475], // 15, 1.50, 18.75, 75
])('a call of %s that writes to the cache costs %d USD', (model, usd) => {
  const written = { ...usage, cacheWriteTokens: 10_000 };

  expect(costOf(tablePrice(model, anthropic), written)).toBeCloseTo(usd, 10);
});

test.each([
  // A regional profile of Bedrock costs a tenth more: 3.30, 0.33, 4.125, 16.50
  ['us.anthropic.claude-sonnet-4-5-20250929-v1:0', 0.25245],
  ['global.anthropic.claude-sonnet-4-5-20250929-v1:0', 0.2295],
])('a call of %s at Bedrock that writes to the cache costs %d USD', (model, usd) => {
  const written = { ...usage, cacheWriteTokens: 10_000 };

  expect(
    costOf(tablePrice(model, 'https://bedrock-runtime.us-east-1.amazonaws.com'), written),
  ).toBeCloseTo(usd, 10);
});

test.each([
  [200_000, 0.27], // 1.25 and 10 for a million
  [200_001, 0.5300025], // 2.50 and 15
])(
  'of gemini-2.5-pro with %d tokens in all have the price of the context length',
  (inputTokens, usd) => {
    const used = { inputTokens, outputTokens: 2_000, cachedTokens: 0 };

    expect(costOf(tablePrice('gemini-2.5-pro', google), used)).toBeCloseTo(usd, 10);
  },
);

test.each([
  ['anthropic/claude-sonnet-4-5', openAi, 'claude-sonnet-4-5', anthropic],
  ['gemini/gemini-2.5-flash', openAi, 'gemini-2.5-flash', google],
  ['claude-sonnet-4-5', 'https://gateway.example.com/v1', 'claude-sonnet-4-5', anthropic],
  ['openai/gpt-4o', 'https://gateway.example.com/v1', 'gpt-4o', openAi],
  ['gpt-4o', null, 'gpt-4o', openAi],
])('%s at %s has the price of %s at %s', (model, url, known, at) => {
  expect(tablePrice(model, url)).toBeDefined();
  expect(tablePrice(model, url)).toEqual(tablePrice(known, at));
});

test('at OpenRouter the whole name counts', () => {
  const price = tablePrice('anthropic/claude-sonnet-4', 'https://openrouter.ai/api/v1');

  expect(price).toEqual({ input: 3, cachedInput: 0.3, cacheWrite: 3.75, output: 15 });
});

test.each([
  ['my-model', openAi],
  ['claude-sonnet-4-5', openAi],
  ['scripted', openAi],
  ['ollama/gpt-oss-20b', openAi],
  ['gpt-4o', 'http://localhost:4000/v1'],
  ['gpt-4o', 'http://127.0.0.1:4000/v1'],
  ['gpt-4o', 'http://[::1]:4000/v1'],
  ['gpt-4o', 'http://192.168.1.7/v1'],
  ['anthropic/claude-sonnet-4-5', 'http://10.0.0.7/v1'],
])('the price of %s at %s is not known', (model, url) => {
  expect(tablePrice(model, url)).toBeUndefined();
});

test('the table is named by the version that is installed', () => {
  const installed = new URL(
    '../../../node_modules/@pydantic/genai-prices/package.json',
    import.meta.url,
  );
  const { name, version } = JSON.parse(readFileSync(installed, 'utf8'));

  expect(priceTable).toBe(`${name} ${version}`);
});
