import { type Frame, numberOf, textOf } from '../data/frame.ts';
import { createFold } from './fold.ts';

export interface ToolItem {
  readonly kind: 'tool';
  readonly key: string;
  readonly at: number;
  readonly tool: string;
  readonly about: string;
  readonly output: string;
  readonly state: 'running' | 'ok' | 'failed';
  readonly ms: number | null;
}

/** A line of the log. */
export type LogItem =
  | {
      readonly kind: 'turn';
      readonly key: string;
      readonly turn: number;
      readonly ms: number | null;
      readonly input: number;
      readonly output: number;
      readonly cost: number | null;
    }
  | { readonly kind: 'text'; readonly key: string; readonly at: number; readonly text: string }
  | ToolItem
  | {
      readonly kind: 'note';
      readonly key: string;
      readonly at: number;
      readonly level: string;
      readonly text: string;
    };

const argumentKeys = ['command', 'path', 'pattern', 'question', 'summary', 'url', 'name'];
/** The argument that says most, on one line. */
const aboutOf = (json: string): string => {
  try {
    const found = JSON.parse(json) as Readonly<Record<string, unknown>>;
    const key = argumentKeys.find((name) => typeof found[name] === 'string');
    return key === undefined ? json : textOf(found[key]);
  } catch {
    return json;
  }
};

const outputAtMost = 200_000;
const cut = (text: string): string => text.slice(-outputAtMost);

interface Call {
  readonly tool: string;
  readonly arguments: string;
}

/** The calls that an approval is about; the question where there are none. */
const callsIn = (data: Frame['data']): string => {
  const calls = Array.isArray(data['calls']) ? (data['calls'] as readonly Call[]) : [];
  return calls.length === 0
    ? textOf(data['question'])
    : calls.map((call) => `${call.tool} ${aboutOf(call.arguments)}`).join('\n');
};

const withReason = (word: string, why: string): string => (why === '' ? word : `${word}: ${why}`);

const noteOf = ({ type, data }: Frame): string | null => {
  if (type === 'log') return textOf(data['message']);
  if (type === 'network' && data['allowed'] !== true)
    return `the network refused ${textOf(data['host'])}:${data['port']}`;
  const again = data['again'] === true ? ' again, after a restart of the server' : '';
  if (type === 'input_required') return `asks${again}: ${textOf(data['question'])}`;
  if (type === 'approval_required') return `asks permission${again}: ${callsIn(data)}`;
  if (type === 'completed') return withReason('complete', textOf(data['result']));
  if (type === 'cancelled') return withReason('cancelled', textOf(data['reason']));
  if (type === 'failed')
    return `failed: ${textOf((data['error'] as { message?: unknown } | undefined)?.message)}`;
  return null;
};

const levels: Readonly<Record<string, string>> = {
  input_required: 'need',
  approval_required: 'need',
  completed: 'done',
  failed: 'error',
};

interface Draft {
  readonly items: LogItem[];
  readonly tools: Map<string, number>;
  turn: number | null;
}

const startTool = (draft: Draft, { seq, timestamp, data }: Frame): void => {
  draft.tools.set(textOf(data['call_id']), draft.items.length);
  draft.items.push({
    kind: 'tool',
    key: `${seq}`,
    at: Date.parse(timestamp),
    tool: textOf(data['tool']),
    about: aboutOf(textOf(data['arguments'])),
    output: '',
    state: 'running',
    ms: null,
  });
};

const changeTool = (draft: Draft, { data }: Frame, change: (tool: ToolItem) => ToolItem): void => {
  const index = draft.tools.get(textOf(data['call_id']));
  const item = index === undefined ? undefined : draft.items[index];
  if (index !== undefined && item?.kind === 'tool') draft.items[index] = change(item);
};

const changeTurn = (draft: Draft, { data }: Frame): void => {
  const item = draft.turn === null ? undefined : draft.items[draft.turn];
  if (draft.turn === null || item?.kind !== 'turn') return;
  draft.items[draft.turn] = {
    ...item,
    ms: numberOf(data['duration_ms']),
    input: numberOf(data['input_tokens']),
    output: numberOf(data['output_tokens']),
    cost: typeof data['cost_usd'] === 'number' ? data['cost_usd'] : null,
  };
};

const addText = ({ items }: Draft, { seq, timestamp, data }: Frame): void => {
  const last = items.at(-1);
  const text = textOf(data['text']);
  if (last?.kind === 'text') items[items.length - 1] = { ...last, text: last.text + text };
  else items.push({ kind: 'text', key: `${seq}`, at: Date.parse(timestamp), text });
};

const steps: Readonly<Record<string, (draft: Draft, frame: Frame) => void>> = {
  api_call_start: (draft, { seq, data }) => {
    draft.turn = draft.items.length;
    const turn = numberOf(data['turn']);
    draft.items.push({
      ...{ kind: 'turn', key: `${seq}`, turn, ms: null, input: 0, output: 0, cost: null },
    });
  },
  api_call_complete: changeTurn,
  text_delta: addText,
  tool_start: startTool,
  tool_output: (draft, frame) =>
    changeTool(draft, frame, (tool) => ({
      ...tool,
      output: cut(tool.output + textOf(frame.data['chunk'])),
    })),
  tool_end: (draft, frame) =>
    changeTool(draft, frame, (tool) => ({
      ...tool,
      state: frame.data['ok'] === true ? 'ok' : 'failed',
      ms: numberOf(frame.data['duration_ms']),
      output: textOf(frame.data['output']) || tool.output,
    })),
};

const addFrame = (draft: Draft, frame: Frame): void => {
  const step = steps[frame.type];
  const text = step === undefined ? noteOf(frame) : null;
  step?.(draft, frame);
  if (text !== null)
    draft.items.push({
      kind: 'note',
      key: `${frame.seq}`,
      at: Date.parse(frame.timestamp),
      level: levels[frame.type] ?? textOf(frame.data['level']),
      text,
    });
};

/** The log of one attempt, oldest first. */
export const createLog = (attempt: number): ((frames: readonly Frame[]) => readonly LogItem[]) => {
  const fold = createFold<Frame, Draft>(
    () => ({ items: [], tools: new Map(), turn: null }),
    (draft, frame) => {
      if (frame.attempt === attempt) addFrame(draft, frame);
    },
  );
  return (frames) => [...fold(frames).items];
};
