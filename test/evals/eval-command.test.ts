import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { readSuite, solvingScript } from '../../scripts/evals/suite.mjs';
import { parseScript } from '../../src/actors/model/script.ts';
import { createScriptedModel } from '../../src/actors/model/scripted.ts';
import { play } from '../model-server/play.mjs';
import { isLong } from '../support/long.ts';
import { startModelServer } from '../support/model-server.ts';
import { temporaryFolder } from '../support/temporary.ts';

const command = fileURLToPath(new URL('../../scripts/eval.mjs', import.meta.url));
const names: readonly string[] = readSuite().map(({ name }) => name);
const some = isLong ? names : ['fix-last-page'];
const timeout = isLong ? 600_000 : 90_000;

interface Row {
  readonly eval: string;
  readonly ok: boolean;
  readonly why: readonly string[];
  readonly turns: number;
}

const run = async (args: readonly string[], more: NodeJS.ProcessEnv = {}) => {
  const { OPENAI_API_KEY: _, OPENAI_BASE_URL: __, ...env } = process.env;
  const child = spawn(process.execPath, [command, ...args], {
    env: { ...env, ...more },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, err] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  return { code: child.exitCode, out, err };
};

const figures = ' +0 +0 +0\\.0000 +\\d+\\.\\d';

test('the scripted model solves the evals through the real server; the table has a line per eval and a total', {
  tags: ['slow'],
  timeout,
}, async () => {
  const { code, out, err } = await run(['--only', some.join(',')]);

  const [head, ...lines] = out.trim().split('\n');
  expect([code, err.match(/FAILED.*\n.*/g)]).toEqual([0, null]);
  expect(head).toMatch(/^eval +role +result +turns +tokens in +out +cost \$ +time s$/);
  expect(lines).toEqual([
    ...names
      .filter((name) => some.includes(name))
      .map((name) => expect.stringMatching(`^${name} +\\w+ +solved +\\d+${figures}$`)),
    expect.stringMatching(`^all +solved +\\d+${figures}$`),
    '',
    `${some.length} of ${some.length} solved. Played by the scripted model: no language model was called. This proves the harness.`,
  ]);
});

test('an agent that does nothing solves none', { tags: ['slow'], timeout }, async () => {
  const { code, out } = await run([
    '--json',
    '--idle',
    '--only',
    (isLong ? names : some.slice(-1)).join(','),
  ]);

  const { note, solved, rows } = JSON.parse(out);
  expect({ code, solved }).toEqual({ code: 1, solved: 0 });
  expect(note).toContain('no language model was called');
  for (const { turns, why } of rows as readonly Row[]) {
    expect(turns).toBe(2);
    expect(why.join()).not.toMatch(/exit code|checker did not/);
  }
});

/**
 * The evals asked of a provider on this machine that plays this script; a million tokens cost a
 * hundred dollars.
 */
const runOverHttp = async (script: object, ...args: readonly string[]) => {
  const provider = await startModelServer(play(createScriptedModel(parseScript(script))));
  const config = join(temporaryFolder(), 'config.json');
  const prices = { far: { input_per_million: 100, output_per_million: 100 } };
  writeFileSync(config, JSON.stringify({ api: { prices } }));
  const env = {
    OPENAI_API_KEY: 'no-key-a-script-answers',
    OPENAI_BASE_URL: provider.baseURL,
    API_MODE: 'direct',
  };
  const { code, out } = await run(['--json', '--model', 'far', '--config', config, ...args], env);
  return { code, ...JSON.parse(out), requests: provider.requests };
};

test("a provider's model is called over HTTP, and its cost follows its price", {
  tags: ['slow'],
  timeout,
}, async () => {
  const { code, note, rows, requests } = await runOverHttp(
    solvingScript(readSuite()),
    '--only',
    'fix-last-page',
  );

  const [{ ok, input_tokens, output_tokens, cost_usd }] = rows;
  expect({ code, note, ok }).toEqual({ code: 0, note: null, ok: true });
  expect(requests).toHaveLength(4);
  expect(cost_usd).toBeCloseTo((input_tokens + output_tokens) / 10_000, 6);
});

test('no model call follows when the budget is spent', { tags: ['slow'], timeout }, async () => {
  const args = ['--only', 'fix-last-page', '--repeat', '3', '--max-cost-usd', '0.01'];

  const { code, rows, requests } = await runOverHttp(solvingScript(readSuite()), ...args);

  const [first, ...others] = rows as readonly Row[];
  expect(code).toBe(1);
  expect(first?.why.join()).toContain('budget_exceeded');
  expect(others.map(({ why }) => why)).toEqual(
    Array.from({ length: 2 }, () => ['not run: the budget of --max-cost-usd is spent']),
  );
  expect(requests).toHaveLength(1);
});

test('code that ends the checker before its end does not pass', {
  tags: ['slow'],
  timeout,
}, async () => {
  const content = 'process.exit(0);\n';
  const cheat = [
    { calls: [{ tool: 'write', arguments: { path: 'src/csv.js', content } }] },
    { calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'done' } }] },
  ];

  const { code, rows } = await runOverHttp(
    { scripts: [{ turns: cheat }] },
    '--only',
    'fix-csv-quotes',
  );

  expect(code).toBe(1);
  expect(rows[0].why.join()).toContain('the checker did not finish');
});

test.each([
  ['an eval that does not exist', ['--only', 'nonsense'], 'there is no eval nonsense'],
  [
    'a budget for a model without a price',
    ['--model', 'm', '--max-cost-usd', '1'],
    'the price of m is not',
  ],
  [
    'no number of repetitions',
    ['--repeat', 'many'],
    '--repeat: expected a number above 0, got many',
  ],
  ['a configuration that is not there', ['--config', '/nonsense.json'], '--config: /nonsense.json'],
  ['an unknown flag', ['--speed', '9'], "'--speed'"],
])('%s is refused before anything runs', async (_, args, says) => {
  const { code, out, err } = await run(args);

  expect({ code, out }).toEqual({ code: 2, out: '' });
  expect(err).toContain(says);
});
