// @ts-check
// Plays scripts of the scripted model to whoever asks over the wire. Nothing says who asks there,
// so role and title are read where our own prompts have them; and that a call failed is known of
// commands only, by their last line.
import { speaksResponses } from './wires.mjs';

/** @typedef {import('../../src/actors/model/port.ts').Model} Model */
/** @typedef {import('../../src/actors/model/port.ts').ModelMessage} Message */
/** @typedef {import('./answer.ts').Answer} Answer */
/** @typedef {import('./answer.ts').SeenRequest} SeenRequest */
/**
 * @typedef {{ role?: string, type?: string, content?: unknown, tool_calls?: readonly { id: string,
 * function: { name: string, arguments: string } }[], tool_call_id?: string, call_id?: string,
 * name?: string, arguments?: string, output?: string }} Item
 */

const roles = ['engineer', 'tester', 'reviewer', 'architect', 'product-manager'];
const failedCommand =
  /^\[(exit code [1-9]|timed out|cancelled|the command could not start)[^\n]*\]$/;

/** @param {string} text */
const commandSucceeded = (text) => !failedCommand.test(text.trimEnd().split('\n').at(-1) ?? '');

/** @param {unknown} content */
const textOf = (content) =>
  Array.isArray(content)
    ? content.map((part) => String(part.text ?? '')).join('')
    : String(content ?? '');

/** @param {string} callId @param {string} text @returns {Message} */
const toolResult = (callId, text) => ({
  role: 'tool',
  callId,
  tool: '',
  text,
  ok: commandSucceeded(text),
});

/** @param {Item} item @returns {Message} */
const fromChat = (item) => {
  if (item.role === 'tool') return toolResult(item.tool_call_id ?? '', textOf(item.content));
  if (item.role !== 'assistant') return { role: 'user', text: textOf(item.content) };
  const calls = (item.tool_calls ?? []).map(({ id, function: { name, arguments: text } }) => ({
    id,
    tool: name,
    arguments: text,
  }));
  return { role: 'assistant', text: textOf(item.content), calls };
};

/** Text and calls of one answer are items of their own there. @param {readonly Item[]} items */
const fromResponses = (items) => {
  /** @type {Message[]} */
  const messages = [];
  for (const item of items) {
    const { type, call_id: id = '', name: tool = '', arguments: text = '' } = item;
    const last = messages.at(-1);
    if (type === 'function_call_output') messages.push(toolResult(id, item.output ?? ''));
    else if (type !== 'function_call') messages.push(fromChat(item));
    else {
      const before = last?.role === 'assistant' ? messages.pop() : undefined;
      const said = before?.role === 'assistant' ? before : { text: '', calls: [] };
      messages.push({
        role: 'assistant',
        text: said.text,
        calls: [...said.calls, { id, tool, arguments: text }],
      });
    }
  }
  return messages;
};

/** @param {SeenRequest} seen */
const conversationOf = ({ path, body }) => {
  if (speaksResponses(path))
    return {
      system: String(body['instructions'] ?? ''),
      messages: fromResponses(/** @type {Item[]} */ (body['input'])),
    };
  const [first, ...rest] = /** @type {Item[]} */ (body['messages']);
  return { system: textOf(first?.content), messages: rest.map(fromChat) };
};

/** @param {string} system @param {readonly Message[]} messages */
const askerOf = (system, messages) => {
  const role =
    roles.find((each) => new RegExp(`^You are an? ${each.replace('-', ' ')}\\b`).test(system)) ??
    '';
  const [, taskId = '', title = ''] =
    /^# (\S+): (.*)$/m.exec(messages[0]?.role === 'user' ? messages[0].text : '') ?? [];
  return { taskId, role, title, attempt: 1 };
};

/**
 * Says in every result that no language model was called: the name of the model is the asker's to
 * choose. @param {string} text @param {string} note
 */
const withNote = (text, note) => {
  const args = JSON.parse(text);
  const said = String(args.summary ?? '');
  return said.includes('no language model was called')
    ? text
    : JSON.stringify({ ...args, summary: `${said}\n\n${note}` });
};

/**
 * About as many as a real tokenizer would count, so that limits and prices have something to count.
 * @param {string} text
 */
const tokensOf = (text) => Math.ceil(text.length / 4);

/**
 * The answers of a scripted model, as `createModelServer` wants them.
 * @param {Model} model
 * @returns {(seen: SeenRequest) => Promise<Answer>}
 */
export const play = (model) => async (seen) => {
  const { system, messages } = conversationOf(seen);
  const asker = askerOf(system, messages);
  const asked = {
    model: 'scripted',
    asker,
    idempotencyKey: '',
    system,
    messages,
    tools: [],
    maxTokens: 1,
  };
  for await (const event of model.ask(asked, new AbortController().signal)) {
    if (event.type === 'failed') throw new Error(event.failure.message);
    if (event.type !== 'answered') continue;
    const calls = event.calls.map(({ id, tool, arguments: text }) => ({
      id,
      name: tool,
      arguments:
        tool === 'finish' && model.disclaimer !== null ? withNote(text, model.disclaimer) : text,
    }));
    const [input, output] = [
      tokensOf(JSON.stringify(seen.body)),
      tokensOf(event.text + JSON.stringify(calls)),
    ];
    return {
      kind: 'answer',
      text: event.text,
      calls,
      usage: { prompt_tokens: input, completion_tokens: output },
    };
  }
  throw new Error('the scripted model did not answer');
};
