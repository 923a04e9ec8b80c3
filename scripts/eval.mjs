// Small real tasks for any configured model: success, turns, tokens, cost and time. See
// docs/guides/assistants-and-models.md.
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { createBubblewrap } from '../build/actors/sandbox/bubblewrap.js';
import { createNoSandbox } from '../build/actors/sandbox/run-sandboxed.js';
import { runEval } from './evals/run-eval.mjs';
import { idleScript, readSuite, solvingScript } from './evals/suite.mjs';

const usage = `npm run eval -- [--model <name>] [--only <eval>[,…]] [--repeat <n>] [--max-cost-usd <x>] [--config <file>]
                [--idle] [--json] [--keep] [--list]
  --model         a model of the provider (OPENAI_API_KEY, OPENAI_BASE_URL), or scripted, which solves them all;
                  default: scripted, or what --config says
  --max-cost-usd  for the whole run; needs api.prices in the configuration
  --config        a configuration of the server, for prices, backends, proxies
  --idle          the scripted model does nothing: every eval must fail
  --keep          leaves the folders, and prints them`;

class UsageError extends Error {}

const positive = (name, text, parse) => {
  const value = parse(text);
  if (Number.isNaN(value) || !(value > 0))
    throw new UsageError(`--${name}: expected a number above 0, got ${text}`);
  return value;
};
const whole = (text) => (/^\d+$/.test(text) ? Number(text) : Number.NaN);

const readArguments = () => {
  const text = { type: 'string' };
  const flag = { type: 'boolean', default: false };
  const options = {
    ...{
      model: text,
      only: { type: 'string', multiple: true, default: [] },
      repeat: { type: 'string', default: '1' },
    },
    ...{
      'max-cost-usd': text,
      config: text,
      idle: flag,
      json: flag,
      keep: flag,
      list: flag,
      help: flag,
    },
  };
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    throw new UsageError(error.message);
  }
};

const readConfig = (file) => {
  try {
    return file === undefined ? {} : JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new UsageError(`--config: ${file}: ${error.message}`);
  }
};

const chosen = (suite, only) => {
  const names = only.flatMap((text) => text.split(','));
  const unknown = names.find((name) => !suite.some((each) => each.name === name));
  if (unknown !== undefined)
    throw new UsageError(
      `--only: there is no eval ${unknown}; there are ${suite.map(({ name }) => name).join(', ')}`,
    );
  return names.length === 0 ? suite : suite.filter(({ name }) => names.includes(name));
};

const sandboxFor = ({ sandbox }, scripted) => {
  const held = createBubblewrap({ readPaths: sandbox?.read_paths ?? [], network: false });
  const { ok, detail } = held.check();
  if (sandbox?.mode === 'off') return { sandbox: createNoSandbox(), unconfined: true };
  if (ok) return { sandbox: held, unconfined: false };
  // The scripted model's files are ours; code of a real model does not run as the user unless the
  // configuration says so.
  if (scripted) return { sandbox: createNoSandbox(), unconfined: true };
  throw new UsageError(
    `${detail}; or set sandbox.mode to off in --config to run what the model writes as you`,
  );
};

const plan = (values) => {
  const base = readConfig(values.config);
  const model = values.idle
    ? 'scripted'
    : (values.model ?? (values.config === undefined ? 'scripted' : null));
  const evals = chosen(readSuite(), values.only);
  const budget =
    values['max-cost-usd'] === undefined
      ? null
      : positive('max-cost-usd', values['max-cost-usd'], Number);
  const repeat = positive('repeat', values.repeat, whole);
  const scripted = model === 'scripted';
  if (budget !== null && !scripted && model !== null && base.api?.prices?.[model] === undefined)
    throw new UsageError(
      `--max-cost-usd: the price of ${model} is not in api.prices; state it in a file for --config`,
    );
  const script = scripted ? (values.idle ? idleScript : solvingScript(evals)) : null;
  return {
    base,
    model,
    evals,
    budget,
    repeat,
    script,
    keep: values.keep,
    ...sandboxFor(base, scripted),
  };
};

const columns = [
  ['eval', 'left', ({ eval: name }) => name],
  ['role', 'left', ({ role }) => role],
  ['result', 'left', ({ ok }) => (ok ? 'solved' : 'FAILED')],
  ['turns', 'right', ({ turns }) => `${turns}`],
  ['tokens in', 'right', ({ input_tokens: tokens }) => `${tokens}`],
  ['out', 'right', ({ output_tokens: tokens }) => `${tokens}`],
  ['cost $', 'right', ({ cost_usd: cost }) => (cost === null ? '-' : cost.toFixed(4))],
  ['time s', 'right', ({ seconds }) => (seconds === null ? '-' : seconds.toFixed(1))],
];

const sum = (rows, pick) => rows.reduce((total, row) => total + (pick(row) ?? 0), 0);

const totals = (rows) => ({
  eval: 'all',
  role: '',
  ok: rows.every(({ ok }) => ok),
  turns: sum(rows, ({ turns }) => turns),
  input_tokens: sum(rows, (row) => row.input_tokens),
  output_tokens: sum(rows, (row) => row.output_tokens),
  cost_usd: rows.every(({ cost_usd: cost }) => cost === null)
    ? null
    : sum(rows, ({ cost_usd: cost }) => cost),
  seconds: sum(rows, ({ seconds }) => seconds),
});

const table = (rows) => {
  const lines = [
    columns.map(([name]) => name),
    ...[...rows, totals(rows)].map((row) => columns.map(([, , cell]) => cell(row))),
  ];
  const widths = columns.map((_, index) => Math.max(...lines.map((line) => line[index].length)));
  const padded = (cell, index) =>
    columns[index][1] === 'left' ? cell.padEnd(widths[index]) : cell.padStart(widths[index]);
  return lines.map((line) => line.map(padded).join('  ').trimEnd()).join('\n');
};

const noBudget = {
  ok: false,
  why: ['not run: the budget of --max-cost-usd is spent'],
  turns: 0,
  tool_calls: 0,
};

const runAll = async ({ evals, budget, repeat, ...options }, tell) => {
  const rows = [];
  let interrupted = false;
  process.once('SIGINT', () => {
    interrupted = true;
  });
  for (const given of evals)
    for (let number = 1; number <= repeat && !interrupted; number += 1) {
      const left = budget === null ? null : budget - sum(rows, ({ cost_usd: cost }) => cost);
      const row =
        left !== null && left <= 0
          ? {
              eval: given.name,
              kind: given.task.kind,
              role: given.task.role,
              ...noBudget,
              input_tokens: 0,
              output_tokens: 0,
              cost_usd: null,
              seconds: null,
            }
          : await runEval(given, { ...options, maxCostUsd: left });
      rows.push({ ...row, repeat: number });
      tell(row);
    }
  return { rows, interrupted };
};

const main = async () => {
  const values = readArguments();
  if (values.help) return console.log(usage);
  if (values.list)
    return console.log(
      readSuite()
        .map(({ name, task }) => `${name.padEnd(22)} ${task.title}`)
        .join('\n'),
    );
  const planned = plan(values);
  const note =
    planned.model === 'scripted'
      ? 'Played by the scripted model: no language model was called. This proves the harness.'
      : null;
  const tell = ({ eval: name, ok, why, folder }) => {
    if (values.json) return;
    console.error(
      `${ok ? 'solved' : 'FAILED'}  ${name}${folder === undefined ? '' : `  ${folder}`}`,
    );
    for (const line of why) console.error(`        ${line}`);
  };
  const { rows, interrupted } = await runAll(planned, tell);
  const solved = rows.filter(({ ok }) => ok).length;
  if (values.json)
    console.log(
      JSON.stringify({ model: planned.model, note, solved, of: rows.length, rows }, null, 2),
    );
  else
    console.log(
      `\n${table(rows)}\n\n${solved} of ${rows.length} solved.${note === null ? '' : ` ${note}`}`,
    );
  if (interrupted || solved < rows.length) process.exitCode = interrupted ? 130 : 1;
};

try {
  await main();
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(`eval: ${error.message}`);
  process.exitCode = 2;
}
