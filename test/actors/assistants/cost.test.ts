import { expect, test } from 'vitest';
import { createClaude } from '../../../src/actors/assistants/claude.ts';
import { createUsageMeter } from '../../../src/actors/assistants/usage-meter.ts';
import { noUsage } from '../../../src/machines/task.ts';

interface Result {
  readonly total: number;
  /** The scope of `modelUsage`. */
  readonly input: number;
  /** The usage since the last result, in newer versions. */
  readonly since?: number;
}

/**
 * The end of a run with one call of 1,000 tokens in and 100 out at 0.0045 USD, as claude prints it.
 */
const resultOf = ({ total, input, since }: Result) => {
  const model = (inputTokens: number, costUSD: number) => ({
    'claude-sonnet-4-5': {
      ...{
        inputTokens,
        outputTokens: inputTokens / 10,
        cacheReadInputTokens: 0,
        cacheCreationInputTokens: 0,
      },
      ...{ webSearchRequests: 0, costUSD, contextWindow: 200_000 },
    },
  });
  return {
    ...{
      type: 'result',
      subtype: 'success',
      is_error: false,
      result: 'said',
      total_cost_usd: total,
    },
    usage: {
      input_tokens: 1_000,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      output_tokens: 100,
    },
    modelUsage: model(input, total),
    ...(since === undefined ? {} : { model_usage_since_last_result: model(1_000, since) }),
  };
};

/** The cost of several runs of one session, in order, each with the usage of the earlier ones. */
const costsOf = (runs: readonly Result[]): readonly number[] => {
  let before = { ...noUsage };
  return runs.map((each) => {
    const meter = createUsageMeter({ before, costOf: () => null });
    for (const event of createClaude().read(JSON.stringify(resultOf(each)))) meter.add(event);
    const { inputTokens, outputTokens, costUsd } = meter.take();
    before = {
      ...before,
      input_tokens: before.input_tokens + inputTokens,
      output_tokens: before.output_tokens + outputTokens,
      cost_usd: (before.cost_usd ?? 0) + (costUsd ?? 0),
    };
    return Math.round((costUsd ?? 0) * 10_000) / 10_000;
  });
};

test.each<[string, readonly Result[]]>([
  [
    '2.1.197 and 2.1.260, whose total is of the run',
    [
      { total: 0.0045, input: 1_000 },
      { total: 0.0045, input: 1_000 },
      { total: 0.0045, input: 1_000 },
    ],
  ],
  [
    '2.1.300, whose total is of the session',
    [
      { total: 0.0045, input: 1_000 },
      { total: 0.009, input: 2_000 },
      { total: 0.0135, input: 3_000 },
    ],
  ],
  [
    '2.1.330, which says what is new',
    [
      { total: 0.0045, input: 1_000, since: 0.0045 },
      { total: 0.009, input: 2_000, since: 0.0045 },
      { total: 0.0135, input: 3_000, since: 0.0045 },
    ],
  ],
])('each run of a session that goes on costs what it costs, with %s', (_, runs) => {
  expect(costsOf(runs)).toEqual([0.0045, 0.0045, 0.0045]);
});

test('another version of the assistant between two runs does not change the counts', () => {
  const runs: readonly Result[] = [
    { total: 0.0045, input: 1_000 },
    { total: 0.0045, input: 1_000 },
    { total: 0.0135, input: 3_000 },
    { total: 0.018, input: 4_000, since: 0.0045 },
  ];

  expect(costsOf(runs)).toEqual([0.0045, 0.0045, 0.0045, 0.0045]);
});
