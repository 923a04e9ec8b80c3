// @ts-check
// How the Messages API of Anthropic and the Gemini API, also on Vertex, put an answer into a stream, and what they
// refuse. Not done: images, batches, beta features, limits of size, the order of thoughts between calls.

/** @typedef {import('./answer.ts').Usage} Usage */
/** @typedef {import('./answer.ts').Wire} Wire */
/** @typedef {Readonly<Record<string, any>>} Block */

/** @param {string} type @param {object} fields */
const typed = (type, fields) => `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
/** @param {unknown} value */
const event = (value) => `data: ${JSON.stringify(value)}\n\n`;
/** @param {string} text */
const pieces = (text) => text.match(/.{1,5}/gsu) ?? [];
/** @type {Usage} */
const counted = { prompt_tokens: 11, completion_tokens: 7 };

/** @param {Usage | null} usage */
const partsOf = (usage) => {
  const { prompt_tokens: all, prompt_tokens_details: details } = usage ?? counted;
  const { cached_tokens: read = 0, cache_write_tokens: written = 0 } = details ?? {};
  return { fresh: all - read - written, read, written };
};

const stopReasons = /** @type {Readonly<Record<string, string>>} */ ({
  stop: 'end_turn',
  tool_calls: 'tool_use',
  length: 'max_tokens',
  content_filter: 'refusal',
});

/** @param {number} index @param {object} start @param {readonly object[]} deltas */
const block = (index, start, deltas) => [
  typed('content_block_start', { index, content_block: start }),
  ...deltas.map((delta) => typed('content_block_delta', { index, delta })),
  typed('content_block_stop', { index }),
];

/** @param {string} thought */
const signatureOf = (thought) => `signed:${thought}`;

/** What it refuses about one message. @param {Block} message @param {Block | undefined} before */
const refusedMessage = ({ role, content }, before) => {
  if (before !== undefined && before['role'] === role) return 'roles must alternate';
  const blocks = /** @type {readonly Block[]} */ (
    typeof content === 'string' ? [{ type: 'text', text: content }] : content
  );
  if (blocks.length === 0) return 'all messages must have non-empty content';
  if (blocks.some(({ type, text }) => type === 'text' && text === ''))
    return 'text content blocks must be non-empty';
  const forged = blocks.some(
    ({ type, thinking, signature }) => type === 'thinking' && signature !== signatureOf(thinking),
  );
  if (forged) return 'Invalid `signature` in `thinking` block';
  const asked = /** @type {readonly Block[]} */ (
    before?.['role'] === 'assistant' && Array.isArray(before['content']) ? before['content'] : []
  ).flatMap(({ type, id }) => (type === 'tool_use' ? [id] : []));
  const given = blocks.flatMap(({ type, tool_use_id: id }) => (type === 'tool_result' ? [id] : []));
  if (given.some((id) => !asked.includes(id)))
    return 'unexpected `tool_use_id` found in `tool_result` blocks';
  if (asked.some((id) => !given.includes(id)))
    return '`tool_use` ids were found without `tool_result` blocks immediately after';
  return null;
};

/** @param {Block} body */
const refusedBody = ({ messages = [], tools, max_tokens: most, system = [] }) => {
  if (most === undefined) return 'max_tokens: Field required';
  const all = /** @type {readonly Block[]} */ (messages);
  if (all[0]?.['role'] !== 'user') return 'first message must use the "user" role';
  for (const [at, message] of all.entries()) {
    const refused = refusedMessage(message, all[at - 1]);
    if (refused !== null) return `messages.${at}: ${refused}`;
  }
  const text = JSON.stringify({ system, tools, messages });
  if (text.includes('"tool_use"') && tools === undefined) return 'tools: Field required';
  if ((text.match(/"cache_control"/g) ?? []).length > 4)
    return 'A maximum of 4 blocks with cache_control may be provided';
  return null;
};

/** @param {string} message */
const invalid = (message) => ({
  status: 400,
  body: { type: 'error', error: { type: 'invalid_request_error', message } },
});

/** @type {Wire} */
export const messages = {
  refuses: ({ body, headers }) => {
    if (headers['x-api-key'] === undefined || headers['anthropic-version'] === undefined)
      return {
        status: 401,
        body: { type: 'error', error: { type: 'authentication_error', message: 'x-api-key' } },
      };
    const why = refusedBody(body);
    return why === null ? null : invalid(why);
  },
  frames: ({ text = '', calls = [], usage = counted, thought, ...given }) => {
    const finish =
      given.finish === undefined ? (calls.length > 0 ? 'tool_calls' : 'stop') : given.finish;
    const { fresh, read, written } = partsOf(usage);
    const input = {
      ...{ input_tokens: fresh, output_tokens: 1 },
      ...{ cache_read_input_tokens: read, cache_creation_input_tokens: written },
    };
    const blocks = [
      ...(thought === undefined
        ? []
        : [
            {
              start: { type: 'thinking', thinking: '', signature: '' },
              deltas: [
                ...pieces(thought.text).map((thinking) => ({ type: 'thinking_delta', thinking })),
                { type: 'signature_delta', signature: signatureOf(thought.text) },
              ],
            },
          ]),
      ...(text === ''
        ? []
        : [
            {
              start: { type: 'text', text: '' },
              deltas: pieces(text).map((piece) => ({ type: 'text_delta', text: piece })),
            },
          ]),
      ...calls.map((call) => ({
        start: { type: 'tool_use', id: call.id, name: call.name, input: {} },
        deltas: pieces(call.arguments).map((piece) => ({
          type: 'input_json_delta',
          partial_json: piece,
        })),
      })),
    ];
    const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [] };
    const output = usage?.completion_tokens ?? 7;
    return [
      typed('message_start', { message: { ...message, usage: input } }),
      typed('ping', {}),
      ...blocks.flatMap(({ start, deltas }, index) => block(index, start, deltas)),
      ...(finish === null
        ? []
        : [
            typed('message_delta', {
              delta: { stop_reason: stopReasons[finish] ?? finish, stop_sequence: null },
              usage: { output_tokens: output },
            }),
            typed('message_stop', {}),
          ]),
    ];
  },
  error: ({ error = { type: 'overloaded_error', message: 'Overloaded' } }) =>
    typed('error', { error }),
  half:
    typed('message_start', {
      message: {
        ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [] },
        usage: { input_tokens: 11, output_tokens: 1 },
      },
    }) +
    typed('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }) +
    typed('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'half' } }),
};

/** Claude on Vertex: the model is in the path, and a token of Google says who asks. @type {Wire} */
export const vertexClaude = {
  ...messages,
  refuses: ({ body, headers }) => {
    if (!/^Bearer \S/.test(headers.authorization ?? ''))
      return { status: 401, body: { error: { code: 401, status: 'UNAUTHENTICATED' } } };
    if (body['anthropic_version'] !== 'vertex-2023-10-16')
      return invalid('anthropic_version: Field required');
    const why =
      body['model'] === undefined ? refusedBody(body) : 'model: Extra inputs are not permitted';
    return why === null ? null : invalid(why);
  },
};

/** @param {Block} body */
const refusedContents = ({ contents = [] }) => {
  const all = /** @type {readonly Block[]} */ (contents);
  for (const [at, { role, parts = [] }] of all.entries()) {
    if (parts.length === 0) return `contents[${at}].parts: must not be empty`;
    const calls = /** @type {readonly Block[]} */ (parts).filter((part) => part['functionCall']);
    if (role === 'model' && calls.length > 0 && calls[0]?.['thoughtSignature'] !== 'sealed')
      return 'Function call is missing a thought_signature in functionCall parts';
    const results = /** @type {readonly Block[]} */ (parts).filter((p) => p['functionResponse']);
    const asked = /** @type {readonly Block[]} */ (all[at - 1]?.['parts'] ?? []).filter(
      (part) => part['functionCall'],
    );
    if (results.length !== asked.length && (results.length > 0 || role === 'user'))
      return 'the number of function response parts must equal the number of function call parts';
  }
  return null;
};

/** @type {Wire} */
export const gemini = {
  refuses: ({ body, headers }) => {
    if (headers['x-goog-api-key'] === undefined && headers.authorization === undefined)
      return { status: 403, body: { error: { code: 403, message: 'no API key', status: 'X' } } };
    const why = refusedContents(body);
    return why === null
      ? null
      : { status: 400, body: { error: { code: 400, message: why, status: 'INVALID_ARGUMENT' } } };
  },
  frames: ({ text = '', calls = [], usage = counted, thought, ...given }) => {
    const finish = given.finish === undefined ? 'stop' : given.finish;
    const { read } = partsOf(usage);
    /** @param {object} part @param {object} more */
    const chunk = (part, more = {}) =>
      event({ candidates: [{ index: 0, content: { role: 'model', parts: [part] }, ...more }] });
    const reasons = /** @type {Readonly<Record<string, string>>} */ ({
      stop: 'STOP',
      length: 'MAX_TOKENS',
      content_filter: 'SAFETY',
    });
    const usageMetadata = {
      promptTokenCount: usage?.prompt_tokens ?? 11,
      candidatesTokenCount: usage?.completion_tokens ?? 7,
      totalTokenCount: (usage?.prompt_tokens ?? 11) + (usage?.completion_tokens ?? 7),
      cachedContentTokenCount: read,
    };
    return [
      ...(thought === undefined ? [] : [chunk({ text: thought.text, thought: true })]),
      ...pieces(text).map((piece) => chunk({ text: piece })),
      ...calls.map(({ id, name, arguments: args }, at) =>
        chunk({
          functionCall: { id, name, args: JSON.parse(args) },
          // The first call of an answer is signed.
          ...(at === 0 ? { thoughtSignature: 'sealed' } : {}),
        }),
      ),
      ...(finish === null
        ? []
        : [
            event({
              candidates: [
                {
                  ...{ index: 0, finishReason: reasons[finish] ?? finish },
                  content: { role: 'model', parts: [{ text: '' }] },
                },
              ],
              ...(usage === null ? {} : { usageMetadata }),
            }),
          ]),
    ];
  },
  error: ({ error = { code: 503, message: 'overloaded', status: 'UNAVAILABLE' } }) =>
    event({ error }),
  half: event({
    candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'half' }] } }],
  }),
};

/** @param {unknown} value */
const tokensOf = (value) => Math.ceil(JSON.stringify(value).length / 4);

/**
 * The prompt cache of Anthropic: what is before a block with `cache_control` is kept, and the
 * longest such beginning of a later request is read.
 */
export const createPromptCache = () => {
  const kept = new Set();
  return {
    /** @param {Block} body @returns {Usage} */
    count: ({ tools = [], system = [], messages: said = [] }) => {
      const turns = /** @type {readonly Block[]} */ (said).flatMap(({ role, content }) =>
        (Array.isArray(content) ? content : [{ type: 'text', text: content }]).map((part) => ({
          ...part,
          role,
        })),
      );
      const blocks = /** @type {readonly Block[]} */ ([...tools, ...system, ...turns]);
      let [prefix, all, read, upTo] = ['', 0, 0, 0];
      for (const { cache_control: marked, ...rest } of blocks) {
        prefix += JSON.stringify(rest);
        all += tokensOf(rest);
        if (kept.has(prefix)) read = all;
        if (marked !== undefined) {
          kept.add(prefix);
          upTo = all;
        }
      }
      const details = { cached_tokens: read, cache_write_tokens: Math.max(0, upTo - read) };
      return { prompt_tokens: all, completion_tokens: 7, prompt_tokens_details: details };
    },
  };
};
