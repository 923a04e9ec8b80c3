import { setTimeout as delay } from 'node:timers/promises';
import {
  cancelledCall,
  type Model,
  type ModelEvent,
  type ModelMessage,
  type ModelRequest,
  type ToolCall,
} from './port.ts';
import type { Script, ScriptTurn } from './script.ts';

const disclaimer = 'Played by the scripted model: no language model was called.';
const nothingDone =
  'Played by the scripted model: no language model was called and nothing was changed.';

const unscripted: readonly ScriptTurn[] = [
  { say: 'I look around.', calls: [{ tool: 'find', arguments: { pattern: '*' } }] },
  {
    say: '',
    calls: [{ tool: 'finish', arguments: { status: 'done', summary: nothingDone } }],
  },
];
const endOfScript: ScriptTurn = {
  say: '',
  calls: [
    { tool: 'finish', arguments: { status: 'done', summary: `${disclaimer} The script is over.` } },
  ],
};

const outputLength = 600;
const deltaLength = 12;

const lastResults = (
  messages: readonly ModelMessage[],
): readonly Extract<ModelMessage, { role: 'tool' }>[] => {
  const answer = messages.findLastIndex(({ role }) => role === 'assistant');
  return messages.slice(answer + 1).filter((message) => message.role === 'tool');
};

/** The conversation alone decides the next turn, so it is the same after a restart. */
const nextTurn = (script: Script, { asker, messages }: ModelRequest): ScriptTurn => {
  const fits = script.scripts.find(
    ({ role, title }) => (role ?? asker.role) === asker.role && asker.title.includes(title ?? ''),
  );
  const turn = messages.filter(({ role }) => role === 'assistant').length;
  if (fits === undefined) return unscripted[turn] ?? endOfScript;
  const act = fits.turns[turn];
  if (act === undefined) return endOfScript;
  const failed = lastResults(messages).some(({ ok }) => !ok);
  return failed ? (act.otherwise ?? act) : act;
};

/** The output of the last call; after `ask`, the answer, which follows its result. */
const lastOutput = (messages: readonly ModelMessage[]): string => {
  const at = messages.findLastIndex(({ role }) => role === 'tool');
  const last = messages[at];
  if (last?.role !== 'tool' || lastResults(messages).length === 0) return '';
  const answer = messages[at + 1];
  if (last.tool !== 'ask' || answer?.role !== 'user') return last.text;
  return answer.text.slice(answer.text.indexOf('\n\n') + 2);
};

const fillOutput = (value: unknown, output: string): unknown => {
  if (typeof value === 'string') return value.replaceAll('{{last_output}}', () => output);
  if (Array.isArray(value)) return value.map((each) => fillOutput(each, output));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, fillOutput(each, output)]),
  );
};

const pieces = (text: string): readonly string[] =>
  text.match(new RegExp(`[^]{1,${deltaLength}}`, 'gu')) ?? [];

export const createScriptedModel = (script: Script): Model => ({
  name: 'scripted',
  disclaimer,
  async *ask(request, signal): AsyncGenerator<ModelEvent> {
    await delay(script.turn_ms, undefined, { signal }).catch(() => {});
    const act = nextTurn(script, request);
    const output = lastOutput(request.messages).trim().slice(-outputLength);
    const text = String(fillOutput(act.say, output));
    for (const delta of pieces(text)) {
      if (signal.aborted) break;
      yield { type: 'text', delta };
    }
    if (signal.aborted) {
      yield { type: 'failed', failure: cancelledCall };
      return;
    }
    const turn = request.messages.length;
    const calls: readonly ToolCall[] = act.calls.map((call, index) => ({
      id: `call_${turn}_${index}`,
      tool: call.tool,
      arguments: JSON.stringify(fillOutput(call.arguments, output)),
    }));
    const usage = { inputTokens: 0, outputTokens: 0, cachedTokens: 0 };
    yield { type: 'answered', text, calls, truncated: false, usage };
  },
});
