#!/usr/bin/env node
// Speaks as `codex exec --json` 0.169 does: ids of items begin anew in each run, and the usage
// counts from the beginning of the session. Each call of its model takes 100 tokens in (10 cached)
// and gives 5.
import { appendFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { play } from './kit.mjs';

const args = process.argv.slice(2);
if (args[0] === 'login') process.exit(process.env.FAKE_LOGGED_IN?.includes('codex') ? 0 : 1);

let item = 0;
let calls = 0;
let keep = () => {};
let thread = '';
/**
 * The real one records its usage there: each model call at its answer, and the total when the tools
 * have ended.
 */
const note = (line) => {
  const home = process.env.CODEX_HOME;
  if (home === undefined) return;
  const folder = join(home, 'sessions', ...new Date().toISOString().slice(0, 10).split('-'));
  mkdirSync(folder, { recursive: true });
  const text = JSON.stringify({ timestamp: new Date().toISOString(), ...line });
  appendFileSync(join(folder, `rollout-x-${thread}.jsonl`), `${text}\n`);
};
const usageOf = (count) => ({
  input_tokens: count * 100,
  cached_input_tokens: count * 10,
  output_tokens: count * 5,
});
const noteCall = () =>
  note({ type: 'token_usage_record', payload: { response_id: `r${calls}`, usage: usageOf(1) } });
const noteTurn = () =>
  note({
    type: 'event_msg',
    payload: { type: 'token_count', info: { total_token_usage: usageOf(calls) } },
  });
const next = () => `item_${item++}`;
const done = (fields) => ({ type: 'item.completed', item: { id: next(), ...fields } });

const wire = {
  begin: (given) => {
    calls = given.before;
    keep = given.keep;
  },
  session: (id) => {
    thread = id;
    return [
      { type: 'thread.started', thread_id: id },
      done({ type: 'error', message: 'Model metadata not found' }),
      { type: 'turn.started' },
    ];
  },
  turn: ({ text, tool, wrote }) => {
    calls += 1;
    keep(calls);
    noteCall();
    if (tool === undefined || tool.hangs !== true) noteTurn();
    const id = tool === undefined ? '' : next();
    const command = { id, type: 'command_execution', command: tool?.input };
    const [exit_code, status] = tool?.failed === true ? [1, 'failed'] : [0, 'completed'];
    return [
      done({ type: 'reasoning', text: 'hm' }),
      ...(text === undefined ? [] : [done({ type: 'agent_message', text })]),
      ...(tool === undefined
        ? []
        : [
            {
              type: 'item.started',
              item: { ...command, aggregated_output: '', exit_code: null, status: 'in_progress' },
            },
            {
              type: 'item.completed',
              item: { ...command, aggregated_output: tool.output, exit_code, status },
            },
          ]),
      ...(wrote === undefined ? [] : fileChange(wrote)),
    ];
  },
  result: () => [
    {
      type: 'turn.completed',
      usage: usageOf(calls),
    },
  ],
  failure: (message) => [
    { type: 'error', message: `Reconnecting... 1/5 (${message})` },
    { type: 'turn.failed', error: { message } },
  ],
};
wire.limited = () =>
  wire.failure(
    "You've hit your usage limit. Visit https://chatgpt.com/codex/settings/usage to purchase more credits or try again in 3 seconds.",
  );
const fileChange = (path) => {
  const change = {
    id: next(),
    type: 'file_change',
    changes: [{ path: `${process.cwd()}/${path}`, kind: 'add' }],
  };
  return [
    { type: 'item.started', item: { ...change, status: 'in_progress' } },
    { type: 'item.completed', item: { ...change, status: 'completed' } },
  ];
};

const at = args.indexOf('resume');
await play(wire, { session: at < 0 ? null : args[at + 1] });
