import { z } from 'zod';
import type { Denial } from '../../machines/agent/agent-selectors.ts';
import { isJsonObject } from '../../machines/json.ts';
import { messageOf } from '../../machines/message-of.ts';
import type { ToolCall, ToolSpec } from '../model/port.ts';
import { keepHeadAndTail, maxResultBytes } from '../process/head-tail-buffer.ts';
import { askArguments, askTool } from '../tools/ask.ts';
import { finishArguments, finishTool } from '../tools/finish.ts';
import type { CallResult, Tool, ToolContext, ToolResult } from '../tools/port.ts';
import { changesFiles, readsOnly, toolbox } from '../tools/toolbox.ts';

/** Gets one `start` and one `end` for every call, refused ones too, and the output in between. */
export interface CallObserver {
  /** `args` are the parsed arguments, or the model's text when that is not JSON. */
  start(call: ToolCall, args: unknown): void | Promise<void>;
  output(call: ToolCall, chunk: string): void;
  end(call: ToolCall, result: CallResult): void | Promise<void>;
}

export interface ExecutorOptions {
  /** Unknown names grant nothing. */
  readonly tools: readonly string[];
  /** Tools beside those of the toolbox. */
  readonly more?: readonly Tool[];
  readonly context: (call: ToolCall) => Omit<ToolContext, 'emit'>;
  /** Calls that a person denied; each gets the reason as its result. */
  readonly denied?: Denial | null;
  readonly observe: CallObserver;
  /** Waits until no other attempt changes the same files, then runs the call. */
  readonly alone?: <Result>(work: () => Promise<Result>) => Promise<Result>;
  /** The result of a call in an earlier process; null to make the call. */
  readonly recall?: (call: ToolCall) => CallResult | null;
  /** Adds the project's instructions to the result of a call that succeeded. Never rejects. */
  readonly withInstructions?: (result: CallResult, args: unknown) => Promise<CallResult>;
  /** A monotonic clock (ms). */
  readonly now?: () => number;
}

export interface Executor {
  /**
   * Runs the calls of one model answer: neighbouring read-only calls at once, the others one by
   * one. Gives one result for every call id, in the order of the calls; a call that repeats an id
   * does not run. Nothing runs after a valid `finish` or an abort. Never rejects.
   */
  run(calls: readonly ToolCall[]): Promise<readonly CallResult[]>;
}

const maxAtOnce = 8;
const maxIssues = 5;

const specCache = new WeakMap<Tool, ToolSpec>();

/** Cached, since every turn of every agent sends it. */
const specOf = (tool: Tool): ToolSpec => {
  const known = specCache.get(tool);
  if (known !== undefined) return known;
  const { $schema, ...made } = z.toJSONSchema(tool.schema, { io: 'input' });
  const parameters = tool.parameters ?? made;
  const spec = { name: tool.name, description: tool.description, parameters };
  specCache.set(tool, spec);
  return spec;
};

/** In the order of the toolbox, then those beside it. */
export const toolSpecs = (
  tools: readonly string[],
  more: readonly Tool[] = [],
): readonly ToolSpec[] =>
  [...toolbox.filter(({ name }) => tools.includes(name)), ...more].map(specOf);

const parseArguments = (text: string): { readonly json: unknown } | { readonly fault: string } => {
  try {
    return { json: JSON.parse(text.trim() === '' ? '{}' : text) };
  } catch (error) {
    return { fault: messageOf(error) };
  }
};

/** Drops nulls, which some models write for arguments that they leave out. */
const withoutNulls = (json: unknown): unknown =>
  isJsonObject(json)
    ? Object.fromEntries(Object.entries(json).filter(([, value]) => value !== null))
    : json;

/** Our text for a problem; undefined where the text of the schema is good enough. */
const argumentProblem: z.core.$ZodErrorMap = (issue) => {
  if (issue.code === 'unrecognized_keys') return `takes no ${issue.keys.join(', ')}`;
  if (issue.input === undefined) return 'is missing';
  return issue.code === 'invalid_type' ? `must be of the type ${issue.expected}` : undefined;
};

const describeIssues = ({ issues }: z.ZodError): string =>
  issues
    .slice(0, maxIssues)
    .map(({ path, message }) => `${path.length > 0 ? `${path.join('.')}: ` : ''}${message}`)
    .join('; ');

const batchesOf = (calls: readonly ToolCall[]): readonly (readonly ToolCall[])[] => {
  const batches: ToolCall[][] = [];
  let reading: ToolCall[] = [];
  for (const call of calls) {
    const reads = readsOnly(call.tool);
    if (reads && reading.length > 0 && reading.length < maxAtOnce) {
      reading.push(call);
      continue;
    }
    const batch = [call];
    batches.push(batch);
    reading = reads ? batch : [];
  }
  return batches;
};

type PreparedCall =
  | { readonly tool: Tool; readonly args: unknown }
  | {
      readonly tool: null;
      readonly args: unknown;
      readonly refusal: string;
      readonly malformed: boolean;
    };

const prepareCall = (
  call: ToolCall,
  allowed: readonly Tool[],
  denied: ExecutorOptions['denied'],
): PreparedCall => {
  const parsed = parseArguments(call.arguments);
  const args = 'json' in parsed ? withoutNulls(parsed.json) : call.arguments;
  const refused = (refusal: string, malformed = true): PreparedCall => ({
    tool: null,
    args,
    refusal,
    malformed,
  });
  const names = allowed.map(({ name }) => name).join(', ');

  const tool = allowed.find(({ name }) => name === call.tool);
  if (tool === undefined) {
    const exists = toolbox.some(({ name }) => name === call.tool);
    return refused(
      `${exists ? 'your role may not use' : 'there is no tool'} ${call.tool}; your tools are: ${names}`,
    );
  }
  if (denied?.tools.includes(call.tool)) return refused(denied.why, false);
  if ('fault' in parsed)
    return refused(`the arguments of ${tool.name} are not valid JSON: ${parsed.fault}`);
  const checked = tool.schema.safeParse(args, { error: argumentProblem });
  if (!checked.success)
    return refused(`the arguments of ${tool.name} are not valid: ${describeIssues(checked.error)}`);
  return { tool, args: checked.data };
};

const failedResult = (text: string): ToolResult => ({ ok: false, text });

/** A fault of an observer must not change what a call does. */
const ignoringErrors = async (notify: () => void | Promise<void>): Promise<void> => {
  try {
    await notify();
  } catch {}
};

/** PostgreSQL refuses NUL bytes in a text. */
const withoutNul = (text: string): string => text.replaceAll('\0', '\uFFFD');

const withoutWaiting: NonNullable<ExecutorOptions['alone']> = (work) => work();

const runTool = (
  call: ToolCall,
  prepared: PreparedCall,
  { context, observe }: ExecutorOptions,
): Promise<ToolResult> => {
  if (prepared.tool === null) return Promise.resolve(failedResult(prepared.refusal));
  const own = context(call);
  if (own.signal.aborted) return Promise.resolve(failedResult('cancelled'));
  const emit = (chunk: string): void =>
    void ignoringErrors(() => observe.output(call, withoutNul(chunk)));
  const { tool, args } = prepared;
  return tool.run(args, { ...own, emit });
};

/** A call whose `start` throws does not run: an unrecorded call must not happen. */
const runCall = async (
  call: ToolCall,
  prepared: PreparedCall,
  isOver: boolean,
  options: ExecutorOptions,
): Promise<ToolResult> => {
  const { observe, alone = withoutWaiting } = options;
  let isBegun = false;
  const begin = async (): Promise<void> => {
    isBegun = true;
    await observe.start(call, prepared.args);
  };
  const run = async (): Promise<ToolResult> => {
    await begin();
    return isOver
      ? failedResult('not executed: an earlier call has finished the task')
      : runTool(call, prepared, options);
  };
  try {
    const changes = !isOver && prepared.tool !== null && changesFiles(prepared.tool.name);
    return await (changes ? alone(run) : run());
  } catch (error) {
    if (!isBegun) await ignoringErrors(begin);
    return failedResult(`${call.tool} failed: ${messageOf(error)}`);
  }
};

export const createExecutor = (options: ExecutorOptions): Executor => {
  const { tools, more = [], observe, now = () => performance.now() } = options;
  const allowed = [...toolbox.filter(({ name }) => tools.includes(name)), ...more];

  const execute = async (call: ToolCall, isOver: boolean): Promise<CallResult> => {
    const known = options.recall?.(call) ?? null;
    if (known !== null) return known;
    const startedAt = now();
    const prepared = prepareCall(call, allowed, options.denied);
    const { ok, text, images } = await runCall(call, prepared, isOver, options);
    const made: CallResult = {
      callId: call.id,
      tool: call.tool,
      ok,
      text: keepHeadAndTail(withoutNul(text), maxResultBytes),
      durationMs: Math.max(0, Math.round(now() - startedAt)),
      finish: ok && call.tool === finishTool.name ? finishArguments.parse(prepared.args) : null,
      malformed: prepared.tool === null && prepared.malformed,
      question:
        ok && call.tool === askTool.name ? askArguments.parse(prepared.args).question : null,
      images,
    };
    const result = ok ? ((await options.withInstructions?.(made, prepared.args)) ?? made) : made;
    await ignoringErrors(() => observe.end(call, result));
    return result;
  };

  const run = async (calls: readonly ToolCall[]): Promise<readonly CallResult[]> => {
    const unique = calls.filter(
      ({ id }, index) => calls.findIndex((other) => other.id === id) === index,
    );
    const results: CallResult[] = [];
    for (const batch of batchesOf(unique)) {
      const isOver = results.some(({ finish }) => finish !== null);
      results.push(...(await Promise.all(batch.map((call) => execute(call, isOver)))));
    }
    return results;
  };

  return { run };
};
