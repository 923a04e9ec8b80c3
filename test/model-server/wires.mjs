// @ts-check
// How chat completions and responses put an answer, an error and the half of a piece into a stream.

import { bedrock, speaksConverse } from './bedrock-wire.mjs';
import { gemini, messages, vertexClaude } from './native-wires.mjs';

/** @typedef {import('./answer.ts').Usage} Usage */
/** @typedef {import('./answer.ts').Wire} Wire */

/** @param {unknown} value */
const event = (value) => `data: ${JSON.stringify(value)}\n\n`;

/** @param {string} text */
const halves = (text) => {
  const middle = Math.ceil(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)];
};
/** @param {string} text */
const pieces = (text) => text.match(/.{1,5}/gsu) ?? [];
const overloaded = { message: 'overloaded', code: 'server_error', type: 'server_error' };
/** @type {Usage} */
const counted = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };

/** @param {object} delta @param {string | null} finish */
const chunk = (delta, finish = null) => ({
  id: 'c1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: finish }],
});

/** @type {Wire} */
const chat = {
  frames: ({ text = '', calls = [], usage = counted, thought, ...given }) => {
    const finish =
      given.finish === undefined ? (calls.length > 0 ? 'tool_calls' : 'stop') : given.finish;
    const callChunks = calls.flatMap((call, index) => {
      const id = call.id === undefined ? {} : { id: call.id };
      /** @param {object} fn */
      const part = (fn) => chunk({ tool_calls: [{ index, type: 'function', function: fn }] });
      const begun = {
        index,
        ...id,
        type: 'function',
        function: { name: call.name, arguments: '' },
      };
      return [
        chunk({ tool_calls: [begun] }),
        ...halves(call.arguments).map((half) => part({ arguments: half })),
      ];
    });
    const chunks = [
      chunk({ role: 'assistant', content: '' }),
      ...pieces(thought?.text ?? '').map((piece) => chunk({ [thought?.field ?? '']: piece })),
      ...pieces(text).map((content) => chunk({ content })),
      ...callChunks,
      ...(finish === null ? [] : [chunk({}, finish)]),
      ...(usage === null ? [] : [{ ...chunk({}), choices: [], usage }]),
    ];
    return [
      ...chunks.map(event),
      ...(finish === null || given.hold === true ? [] : ['data: [DONE]\n\n']),
    ];
  },
  error: ({ error = overloaded }) => event({ error }),
  half: event(chunk({ content: 'half' })),
};

/** @param {string} type @param {object} fields */
const typed = (type, fields) => `event: ${type}\n${event({ ...fields, type })}`;
/** @param {string} delta */
const textDelta = (delta, place = 0) =>
  typed('response.output_text.delta', {
    item_id: 'msg_1',
    output_index: place,
    content_index: 0,
    delta,
  });

/**
 * How chat completions call an ending, as responses call it.
 * @type {Readonly<Record<string, string>>}
 */
const incompleteReasons = { length: 'max_output_tokens' };

/** @param {string} finish @param {Usage | null} usage */
const lastResponse = (finish, usage) => {
  const counts = usage && {
    input_tokens: usage.prompt_tokens,
    output_tokens: usage.completion_tokens,
    total_tokens: usage.prompt_tokens + usage.completion_tokens,
    input_tokens_details: usage.prompt_tokens_details ?? { cached_tokens: 0 },
  };
  const whole = ['stop', 'tool_calls'].includes(finish);
  return typed(whole ? 'response.completed' : 'response.incomplete', {
    response: {
      id: 'resp_1',
      status: whole ? 'completed' : 'incomplete',
      incomplete_details: whole ? null : { reason: incompleteReasons[finish] ?? finish },
      usage: counts,
    },
  });
};

/**
 * What responses refuse about the items of a request.
 * @param {readonly { type?: string, call_id?: string }[]} items
 */
const refusedItems = (items) => {
  const idsOf = (/** @type {string} */ type) =>
    items.flatMap((item) => (item.type === type ? [item.call_id] : []));
  const [called, answered] = [idsOf('function_call'), idsOf('function_call_output')];
  const lost = answered.find((id) => !called.includes(id));
  const open = called.find((id) => !answered.includes(id));
  if (lost !== undefined)
    return `No tool call found for function call output with call_id ${lost}.`;
  return open === undefined ? null : `No tool output found for function call ${open}.`;
};

/** @type {Wire} */
const responses = {
  refuses: ({ body: { input } }) => {
    const message = Array.isArray(input) ? refusedItems(input) : null;
    return message === null
      ? null
      : { status: 400, body: { error: { message, type: 'invalid_request_error', code: null } } };
  },
  frames: ({ text = '', calls = [], usage = counted, finish = 'stop', thought }) => {
    const textAt = thought === undefined ? 0 : 1;
    const callFrames = calls.flatMap((call, place) => {
      const at = { item_id: `fc_${place}`, output_index: textAt + place + 1 };
      const item = {
        type: 'function_call',
        id: at.item_id,
        call_id: call.id,
        name: call.name,
        ...(call.namespace === undefined ? {} : { namespace: call.namespace }),
        arguments: '',
      };
      const whole = { ...item, arguments: call.arguments };
      return [
        typed('response.output_item.added', { output_index: at.output_index, item }),
        ...halves(call.arguments).map((delta) =>
          typed('response.function_call_arguments.delta', { ...at, delta }),
        ),
        typed('response.function_call_arguments.done', { ...at, arguments: call.arguments }),
        typed('response.output_item.done', { output_index: at.output_index, item: whole }),
      ];
    });
    const content = [{ type: 'output_text', text, annotations: [] }];
    const message = {
      type: 'message',
      id: 'msg_1',
      role: 'assistant',
      status: 'completed',
      content,
    };
    const reasoning = {
      type: 'reasoning',
      id: 'rs_1',
      summary: [],
      status: null,
      encrypted_content: thought?.text,
    };
    return [
      typed('response.created', { response: { id: 'resp_1', status: 'in_progress' } }),
      ...(thought === undefined
        ? []
        : [typed('response.output_item.done', { output_index: 0, item: reasoning })]),
      typed('response.output_item.added', {
        output_index: textAt,
        item: { ...message, content: [] },
      }),
      ...pieces(text).map((delta) => textDelta(delta, textAt)),
      typed('response.output_item.done', { output_index: textAt, item: message }),
      ...callFrames,
      ...(finish === null ? [] : [lastResponse(finish, usage)]),
    ];
  },
  error: ({ error = overloaded, as = 'nested' }) => {
    if (as === 'failed')
      return typed('response.failed', { response: { id: 'resp_1', status: 'failed', error } });
    return typed('error', as === 'flat' ? error : { error });
  },
  half: textDelta('half'),
};

/** @param {string} path */
export const speaksResponses = (path) => path.endsWith('/responses');

/**
 * The protocol of a path: chat completions where it names no other. @param {string} path
 * @returns {Wire}
 */
export const wireFor = (path) => {
  if (speaksResponses(path)) return responses;
  // claude asks for `/v1/messages?beta=true`.
  if (/\/messages(\?|$)/.test(path)) return messages;
  if (speaksConverse(path)) return bedrock;
  if (path.endsWith(':streamRawPredict')) return vertexClaude;
  return path.includes(':streamGenerateContent') ? gemini : chat;
};
