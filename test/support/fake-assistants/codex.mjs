#!/usr/bin/env node
// Speaks as `codex exec --json` 0.169 does: ids of items begin anew in each run, and the usage counts from the beginning
// of the session. Each call of its model takes 100 tokens in (10 cached) and gives 5.
import { appendFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { play } from './kit.mjs';

const args = process.argv.slice(2);
if (args[0] === 'login') process.exit(process.env.FAKE_LOGGED_IN?.includes('codex') ? 0 : 1);

let item = 0;
let calls = 0;
let keep = () => {};
let thread = '';
/** Where the real one writes down what its thread has used, after every call of its model. */
const note = () => {
  const home = process.env.CODEX_HOME;
  if (home === undefined) return;
  const folder = join(home, 'sessions', ...new Date().toISOString().slice(0, 10).split('-'));
  mkdirSync(folder, { recursive: true });
  const total_token_usage = { input_tokens: calls * 100, cached_input_tokens: calls * 10, output_tokens: calls * 5 };
  const line = { type: 'event_msg', payload: { type: 'token_count', info: { total_token_usage } } };
  appendFileSync(join(folder, `rollout-x-${thread}.jsonl`), `${JSON.stringify(line)}\n`);
};
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
    note();
    const id = tool === undefined ? '' : next();
    const command = { id, type: 'command_execution', command: tool?.input };
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
              item: { ...command, aggregated_output: tool.output, exit_code: 0, status: 'completed' },
            },
          ]),
      ...(wrote === undefined ? [] : fileChange(wrote)),
    ];
  },
  result: () => [
    {
      type: 'turn.completed',
      usage: { input_tokens: calls * 100, cached_input_tokens: calls * 10, output_tokens: calls * 5 },
    },
  ],
  failure: (message) => [
    { type: 'error', message: `Reconnecting... 1/5 (${message})` },
    { type: 'turn.failed', error: { message } },
  ],
};
const fileChange = (path) => {
  const change = { id: next(), type: 'file_change', changes: [{ path: `${process.cwd()}/${path}`, kind: 'add' }] };
  return [
    { type: 'item.started', item: { ...change, status: 'in_progress' } },
    { type: 'item.completed', item: { ...change, status: 'completed' } },
  ];
};

const at = args.indexOf('resume');
await play(wire, { session: at < 0 ? null : args[at + 1] });
