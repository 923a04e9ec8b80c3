import { z } from 'zod';
import type { Denial } from '../../machines/agent-selectors.ts';
import { messageOf } from '../../machines/message-of.ts';
import type { ToolCall, ToolSpec } from '../model/port.ts';
import { headAndTail, maxResultBytes } from '../process/head-tail-buffer.ts';
import { askArguments, askTool } from '../tools/ask.ts';
import { finishArguments, finishTool } from '../tools/finish.ts';
import type { CallResult, Tool, ToolContext, ToolResult } from '../tools/port.ts';
import { changingTools, readOnlyTools, toolbox } from '../tools/toolbox.ts';

/** Told of every call, also of one that is refused: one `start` and one `end` each, in between its output. */
export interface CallObserver {
  /** `args` are the parsed arguments, or the text as the model wrote it when that is not JSON. */
  start(call: ToolCall, args: unknown): void;
  output(call: ToolCall, chunk: string): void;
  end(call: ToolCall, result: CallResult): void;
}

export interface ExecutorOptions {
  /** The tools that the role may use; a name that no tool has grants nothing. */
  readonly tools: readonly string[];
  /** What a call gets besides its arguments, asked before each. */
  readonly context: (call: ToolCall) => Omit<ToolContext, 'emit'>;
  /** Calls that a person did not allow: they are answered with the reason. */
  readonly denied?: Denial | null;
  readonly observe: CallObserver;
  /** Runs a call that changes files, where others may change the same ones. One whose turn never comes is not begun. */
  readonly alone?: <Result>(work: () => Promise<Result>) => Promise<Result>;
  /** What came of a call in an earlier process; null when it is to be made. */
  readonly recall?: (call: ToolCall) => CallResult | null;
  /** Milliseconds of any clock that only rises. */
  readonly now?: () => number;
}

export interface Executor {
  /**
   * Runs the calls of one model answer: reading ones next to each other at once, the others one by one, and answers in
   * the order of the calls, exactly once for every call id (a call that repeats an id is not run). After a valid `finish` and after an abort nothing more runs.
   * Never rejects.
   */
  run(calls: readonly ToolCall[]): Promise<readonly CallResult[]>;
}

const maxAtOnce = 8;
const maxIssues = 5;

const specCache = new Map<Tool, ToolSpec>();

/** Made once for each tool: every turn of every agent sends it. */
const specOf = (tool: Tool): ToolSpec => {
  const known = specCache.get(tool);
  if (known !== undefined) return known;
  const { $schema, ...parameters } = z.toJSONSchema(tool.schema, { io: 'input' });
  const spec = { name: tool.name, description: tool.description, parameters };
  specCache.set(tool, spec);
  return spec;
};

/** What the model is told of the tools that a role may use, in the order of the toolbox. */
export const toolSpecs = (tools: readonly string[]): readonly ToolSpec[] =>
  toolbox.filter(({ name }) => tools.includes(name)).map(specOf);

const parseJson = (text: string): { readonly json: unknown } | { readonly fault: string } => {
  try {
    return { json: JSON.parse(text.trim() === '' ? '{}' : text) };
  } catch (error) {
    return { fault: messageOf(error) };
  }
};

/** Some models write null for an argument that they leave out. */
const withoutNulls = (json: unknown): unknown =>
  typeof json === 'object' && json !== null && !Array.isArray(json)
    ? Object.fromEntries(Object.entries(json).filter(([, value]) => value !== null))
    : json;

const describeIssues = ({ issues }: z.ZodError): string =>
  issues
    .slice(0, maxIssues)
    .map(({ path, message }) => `${path.length > 0 ? `${path.join('.')}: ` : ''}${message}`)
    .join('; ');

/** Neighbouring calls of reading tools together, every other call alone. */
const batchesOf = (calls: readonly ToolCall[]): readonly (readonly ToolCall[])[] => {
  const batches: ToolCall[][] = [];
  let reading: ToolCall[] = [];
  for (const call of calls) {
    const reads = readOnlyTools.has(call.tool);
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
  | { readonly tool: null; readonly args: unknown; readonly refusal: string; readonly malformed: boolean };

const prepareCall = (call: ToolCall, allowed: readonly Tool[], denied: ExecutorOptions['denied']): PreparedCall => {
  const parsed = parseJson(call.arguments);
  const args = 'json' in parsed ? withoutNulls(parsed.json) : call.arguments;
  const refused = (refusal: string, malformed = true): PreparedCall => ({ tool: null, args, refusal, malformed });
  const names = allowed.map(({ name }) => name).join(', ');

  const tool = allowed.find(({ name }) => name === call.tool);
  if (tool === undefined) {
    const exists = toolbox.some(({ name }) => name === call.tool);
    return refused(`${exists ? 'your role may not use' : 'there is no tool'} ${call.tool}; your tools are: ${names}`);
  }
  if (denied?.tools.includes(call.tool)) return refused(denied.why, false);
  if ('fault' in parsed) return refused(`the arguments of ${tool.name} are not valid JSON: ${parsed.fault}`);
  const checked = tool.schema.safeParse(args);
  if (!checked.success) return refused(`the arguments of ${tool.name} are not right: ${describeIssues(checked.error)}`);
  return { tool, args: checked.data };
};

const failedResult = (text: string): ToolResult => ({ ok: false, text });

/** Observers are told, never obeyed: what a call does must not depend on whether somebody could be told. */
const ignoringErrors = (say: () => void): void => {
  try {
    say();
  } catch {}
};

/** NUL bytes are no text: PostgreSQL, for one, refuses them. */
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
  const emit = (chunk: string) => ignoringErrors(() => observe.output(call, withoutNul(chunk)));
  const { tool, args } = prepared;
  return tool.run(args, { ...own, emit });
};

/** A `start` that throws keeps the call from running: what could not be recorded must not happen. */
const runCall = async (
  call: ToolCall,
  prepared: PreparedCall,
  isOver: boolean,
  options: ExecutorOptions,
): Promise<ToolResult> => {
  const { observe, alone = withoutWaiting } = options;
  let isBegun = false;
  const begin = (): void => {
    isBegun = true;
    observe.start(call, prepared.args);
  };
  const run = async (): Promise<ToolResult> => {
    begin();
    return isOver
      ? failedResult('not executed: an earlier call has finished the task')
      : runTool(call, prepared, options);
  };
  try {
    const changes = !isOver && prepared.tool !== null && changingTools.has(prepared.tool.name);
    return await (changes ? alone(run) : run());
  } catch (error) {
    if (!isBegun) ignoringErrors(begin);
    return failedResult(`${call.tool} failed: ${messageOf(error)}`);
  }
};

/** The executor of one attempt: role policy, parsing and order are decided here, not in the tools. */
export const createExecutor = (options: ExecutorOptions): Executor => {
  const { tools, observe, now = () => performance.now() } = options;
  const allowed = toolbox.filter(({ name }) => tools.includes(name));

  const execute = async (call: ToolCall, isOver: boolean): Promise<CallResult> => {
    const known = options.recall?.(call) ?? null;
    if (known !== null) return known;
    const startedAt = now();
    const prepared = prepareCall(call, allowed, options.denied);
    const { ok, text } = await runCall(call, prepared, isOver, options);
    const result: CallResult = {
      callId: call.id,
      tool: call.tool,
      ok,
      text: headAndTail(withoutNul(text), maxResultBytes),
      durationMs: Math.max(0, Math.round(now() - startedAt)),
      finish: ok && call.tool === finishTool.name ? finishArguments.parse(prepared.args) : null,
      malformed: prepared.tool === null && prepared.malformed,
      question: ok && call.tool === askTool.name ? askArguments.parse(prepared.args).question : null,
    };
    ignoringErrors(() => observe.end(call, result));
    return result;
  };

  const run = async (calls: readonly ToolCall[]): Promise<readonly CallResult[]> => {
    const unique = calls.filter(({ id }, index) => calls.findIndex((other) => other.id === id) === index);
    const results: CallResult[] = [];
    for (const batch of batchesOf(unique)) {
      const isOver = results.some(({ finish }) => finish !== null);
      results.push(...(await Promise.all(batch.map((call) => execute(call, isOver)))));
    }
    return results;
  };

  return { run };
};
