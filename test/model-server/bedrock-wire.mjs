// @ts-check
// How Amazon Bedrock's ConverseStream puts an answer into its binary event stream, and what it
// refuses. Not done: the value of a signature, images, documents, guardrails, limits of size, which
// models a region has.
import { crc32 } from 'node:zlib';

/** @typedef {import('./answer.ts').Usage} Usage */
/** @typedef {import('./answer.ts').Wire} Wire */
/** @typedef {Readonly<Record<string, any>>} Block */

/** A header whose value is a text (type 7). @param {string} name @param {string} value */
const header = (name, value) => {
  const bytes = Buffer.from(value);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(bytes.length);
  return Buffer.concat([
    Buffer.from([Buffer.byteLength(name)]),
    Buffer.from(name),
    Buffer.from([7]),
    length,
    bytes,
  ]);
};

/** @param {number} value */
const uint32 = (value) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};

/**
 * One message of `application/vnd.amazon.eventstream`.
 * @param {Readonly<Record<string, string>>} names @param {string} text
 */
const message = (names, text) => {
  const payload = Buffer.from(text);
  const headers = Buffer.concat(Object.entries(names).map(([name, value]) => header(name, value)));
  const prelude = Buffer.concat([
    uint32(16 + headers.length + payload.length),
    uint32(headers.length),
  ]);
  const body = Buffer.concat([prelude, uint32(crc32(prelude)), headers, payload]);
  return Buffer.concat([body, uint32(crc32(body))]);
};

/** With padding, as the real one sends it. @param {string} type @param {object} fields */
const event = (type, fields) =>
  message(
    { ':event-type': type, ':content-type': 'application/json', ':message-type': 'event' },
    JSON.stringify({ ...fields, p: 'abcdefgh' }),
  );

/** @param {string} type @param {string} text */
const exception = (type, text) =>
  message(
    { ':exception-type': type, ':content-type': 'application/json', ':message-type': 'exception' },
    JSON.stringify({ message: text }),
  );

/** @param {string} text */
const pieces = (text) => text.match(/.{1,5}/gsu) ?? [];
/** @param {string} thought */
const signatureOf = (thought) => `signed:${thought}`;

/** @param {readonly Block[]} content @param {number} at */
const refusedContent = (content, at) => {
  if (content.length === 0)
    return `The content field in the Message object at messages.${at} is empty. Add a ContentBlock object to the content field and try again.`;
  const blank = content.findIndex(({ text }) => typeof text === 'string' && text.trim() === '');
  if (blank >= 0)
    return `The text field in the ContentBlock object at messages.${at}.content.${blank} is blank. Add text to the text field, and try again.`;
  const forged = content.some(({ reasoningContent: thought }) => {
    const { text, signature } = thought?.reasoningText ?? {};
    return thought !== undefined && signature !== signatureOf(text);
  });
  return forged ? `messages.${at}: Invalid \`signature\` in \`thinking\` block` : null;
};

/** @param {Block} said @param {Block | undefined} before @param {number} at */
const refusedMessage = ({ role, content = [] }, before, at) => {
  if (before?.['role'] === role)
    return 'A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.';
  const refused = refusedContent(content, at);
  if (refused !== null) return refused;
  const earlier = /** @type {readonly Block[]} */ (before?.['content'] ?? []);
  const asked = earlier.flatMap(({ toolUse }) => (toolUse ? [toolUse.toolUseId] : []));
  const given = /** @type {readonly Block[]} */ (content).flatMap(({ toolResult }) =>
    toolResult ? [toolResult.toolUseId] : [],
  );
  if (given.some((id) => !asked.includes(id)))
    return `The number of toolResult blocks at messages.${at}.content exceeds the number of toolUse blocks of previous turn.`;
  const lost = asked.filter((id) => !given.includes(id));
  return lost.length === 0
    ? null
    : `Expected toolResult blocks at messages.${at}.content for the following Ids: ${lost.join(', ')}`;
};

/** @param {Block} body @param {string} model */
const refusedBody = ({ messages = [], toolConfig, system = [] }, model) => {
  const all = /** @type {readonly Block[]} */ (messages);
  if (all[0]?.['role'] !== 'user')
    return 'A conversation must start with a user message. Try again with a conversation that starts with a user message.';
  for (const [at, said] of all.entries()) {
    const refused = refusedMessage(said, all[at - 1], at);
    if (refused !== null) return refused;
  }
  const text = JSON.stringify({ system, toolConfig, messages });
  if (text.includes('"toolUse"') && toolConfig === undefined)
    return 'The toolConfig field must be defined when using toolUse and toolResult content blocks.';
  const points = (text.match(/"cachePoint"/g) ?? []).length;
  if (points > 4) return 'A maximum of 4 cache points may be provided';
  const isOld =
    !/anthropic\.claude|amazon\.nova/.test(model) || /claude-3-(haiku|opus)/.test(model);
  return points > 0 && isOld
    ? 'You invoked an unsupported model or your request did not allow prompt caching.'
    : null;
};

const stopReasons = /** @type {Readonly<Record<string, string>>} */ ({
  stop: 'end_turn',
  tool_calls: 'tool_use',
  length: 'max_tokens',
  content_filter: 'content_filtered',
});

/** @type {Usage} */
const counted = { prompt_tokens: 11, completion_tokens: 7 };

/** @param {Usage} usage */
const usageOf = ({
  prompt_tokens: all,
  completion_tokens: output,
  prompt_tokens_details: more,
}) => {
  const { cached_tokens: read = 0, cache_write_tokens: written = 0 } = more ?? {};
  return {
    inputTokens: all - read - written,
    outputTokens: output,
    totalTokens: all + output,
    cacheReadInputTokens: read,
    cacheWriteInputTokens: written,
  };
};

/** @param {number} contentBlockIndex @param {object} delta */
const piece = (contentBlockIndex, delta) =>
  event('contentBlockDelta', { contentBlockIndex, delta });

/** @param {string} path */
export const speaksConverse = (path) => path.endsWith('/converse-stream');

/** @type {Wire} */
export const bedrock = {
  contentType: 'application/vnd.amazon.eventstream',
  refuses: ({ body, headers, path }) => {
    const { authorization = '' } = headers;
    const isSigned =
      /^AWS4-HMAC-SHA256 Credential=\S+\/\d{8}\/[a-z0-9-]+\/bedrock\/aws4_request, ?SignedHeaders=[^ ,]*host[^ ,]*, ?Signature=[0-9a-f]{64}$/.test(
        authorization,
      );
    if (!isSigned && !/^Bearer \S/.test(authorization))
      return { status: 403, body: { Message: 'Missing Authentication Token' } };
    const why = refusedBody(body, decodeURIComponent(path));
    return why === null ? null : { status: 400, body: { message: why } };
  },
  frames: ({ text = '', calls = [], usage = counted, thought, ...given }) => {
    const finish =
      given.finish === undefined ? (calls.length > 0 ? 'tool_calls' : 'stop') : given.finish;
    const blocks = [
      ...(thought === undefined
        ? []
        : [
            {
              start: null,
              deltas: [
                ...pieces(thought.text).map((part) => ({ reasoningContent: { text: part } })),
                { reasoningContent: { signature: signatureOf(thought.text) } },
              ],
            },
          ]),
      ...(text === ''
        ? []
        : [{ start: null, deltas: pieces(text).map((part) => ({ text: part })) }]),
      ...calls.map((call) => ({
        start: { toolUse: { toolUseId: call.id, name: call.name } },
        deltas: pieces(call.arguments).map((input) => ({ toolUse: { input } })),
      })),
    ];
    return [
      event('messageStart', { role: 'assistant' }),
      ...blocks.flatMap(({ start, deltas }, contentBlockIndex) => [
        ...(start === null ? [] : [event('contentBlockStart', { contentBlockIndex, start })]),
        ...deltas.map((delta) => piece(contentBlockIndex, delta)),
        event('contentBlockStop', { contentBlockIndex }),
      ]),
      ...(finish === null
        ? []
        : [event('messageStop', { stopReason: stopReasons[finish] ?? finish })]),
      ...(finish === null || usage === null
        ? []
        : [event('metadata', { usage: usageOf(usage), metrics: { latencyMs: 1 } })]),
    ];
  },
  error: ({ error = {} }) =>
    exception(
      String(error['type'] ?? 'serviceUnavailableException'),
      String(error['message'] ?? 'overloaded'),
    ),
  half: Buffer.concat([event('messageStart', { role: 'assistant' }), piece(0, { text: 'half' })]),
  halfEvent: piece(0, { text: 'cut' }).subarray(0, 20),
  noJson: message({ ':event-type': 'contentBlockDelta', ':message-type': 'event' }, '{nonsense}'),
};
