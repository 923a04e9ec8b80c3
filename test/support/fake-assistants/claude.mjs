#!/usr/bin/env node
// Speaks as `claude -p --output-format stream-json` 2.1 does: a message comes in pieces that repeat
// its id and a first guess of its usage; the result counts the tokens of the run, and the cost of
// the whole session. Each call of its model takes 100 tokens in (10 of them cached) and gives 5,
// for 0.01 USD.
import { play } from './kit.mjs';

const args = process.argv.slice(2);
if (args[0] === 'auth') process.exit(process.env.FAKE_LOGGED_IN?.includes('claude') ? 0 : 1);

let calls = 0;
let before = 0;
let keep = () => {};
let session = '';

const message = (id, content) => ({
  type: 'assistant',
  message: {
    id,
    role: 'assistant',
    content: [content],
    usage: {
      input_tokens: 80,
      cache_read_input_tokens: 10,
      cache_creation_input_tokens: 10,
      output_tokens: 1,
    },
  },
  parent_tool_use_id: null,
  session_id: session,
});
const use = (id, name, input, output) => [
  message(id, { type: 'tool_use', id: `toolu_${id}`, name, input }),
  {
    type: 'user',
    message: {
      role: 'user',
      content: [{ tool_use_id: `toolu_${id}`, type: 'tool_result', content: output }],
    },
    session_id: session,
  },
];

const wire = {
  begin: (given) => {
    before = given.before;
    calls = given.before;
    keep = given.keep;
  },
  session: (id) => {
    session = id;
    const model = process.env.FAKE_CLAUDE_MODEL;
    return [{ type: 'system', subtype: 'init', session_id: id, model, tools: ['Bash', 'Write'] }];
  },
  turn: ({ text, tool, wrote }) => {
    calls += 1;
    keep(calls);
    const id = `msg_${calls}`;
    return [
      message(id, { type: 'thinking', thinking: 'hm' }),
      ...(text === undefined ? [] : [message(id, { type: 'text', text })]),
      ...(tool === undefined
        ? []
        : use(id, 'Bash', { command: tool.input }, [{ type: 'text', text: tool.output }])),
      ...(wrote === undefined
        ? []
        : use(id, 'Write', { file_path: `${process.cwd()}/${wrote}` }, 'written')),
    ];
  },
  result: (text) => [
    {
      type: 'result',
      subtype: 'success',
      is_error: false,
      result: text,
      session_id: session,
      total_cost_usd: calls * 0.01,
      usage: {
        input_tokens: (calls - before) * 80,
        cache_read_input_tokens: (calls - before) * 10,
        cache_creation_input_tokens: (calls - before) * 10,
        output_tokens: (calls - before) * 5,
      },
    },
  ],
  failure: (words) => [
    {
      type: 'result',
      subtype: 'success',
      is_error: true,
      result: words,
      session_id: session,
      total_cost_usd: 0,
    },
  ],
};

wire.limited = () => [
  {
    type: 'rate_limit_event',
    rate_limit_info: {
      status: 'rejected',
      resetsAt: Math.ceil(Date.now() / 1_000) + 2,
      rateLimitType: 'five_hour',
    },
    session_id: session,
  },
  ...wire.failure("You've hit your session limit · resets 3pm (Europe/Berlin)"),
];

/** As 2.1.332 writes it; older versions tell less. */
wire.throttled = (pause) => {
  const again = pause === undefined ? '' : ` Please try again in ${pause}.`;
  const words = `API Error: Request rejected (429) · This is over your rate.${again}`;
  const told = { error: 'rate_limit', is_api_error_message: true, api_error_status: 429 };
  const [failure] = wire.failure(words);
  return [
    { ...message('synthetic', { type: 'text', text: words }), ...told },
    { ...failure, api_error_status: 429, terminal_reason: 'api_error' },
  ];
};

const at = args.indexOf('--resume');
await play(wire, { session: at < 0 ? null : args[at + 1] });
