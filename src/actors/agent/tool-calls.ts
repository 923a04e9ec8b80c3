import type { Acted } from '../../machines/agent/agent-context.ts';
import type { ActInput } from '../../machines/agent/agent-selectors.ts';
import type { AttemptInput, Failure } from '../../machines/task.ts';
import type { EventType } from '../journal/event-types.ts';
import type { ToolCall } from '../model/port.ts';
import type { Results } from '../results/results.ts';
import type { Network, Sandbox } from '../sandbox/port.ts';
import type { Images } from '../store/port.ts';
import { bashTool } from '../tools/bash.ts';
import { answersMissing } from '../tools/finish.ts';
import type { CallResult, ToolContext } from '../tools/port.ts';
import { isRepeatable, mayChangeFiles } from '../tools/toolbox.ts';
import type { OpenWorkspace, Workspace } from '../workspace/port.ts';
import { type CallObserver, createExecutor } from './executor.ts';
import { folderWaitLog } from './open-attempt.ts';
import type { Session } from './session.ts';
import type { ToolCallSteps } from './turn-steps.ts';

/** `ask` a person, `repeat` the call, or `fail` the attempt. */
export type OnInterrupted = 'ask' | 'repeat' | 'fail';

export const interruptedFailure: Failure = {
  code: 'internal',
  message: 'the server stopped while a call was running; its outcome is unknown',
  facts: { interrupted: true },
  retryable: false,
};

export const questionAbout = (calls: string): string =>
  `The server stopped while this was at work: ${calls}. Its outcome is unknown. Answer 'repeat' to make the call again, or tell the agent what to do instead.`;

/** Any other answer goes to the agent as a text. */
export const isRepeat = (decision: string | null): boolean =>
  decision?.trim().toLowerCase() === 'repeat';

/** Tells the agent before its next turn that its attempt continues in another process. */
const restartedText =
  'The server stopped in the meantime, and has started again. Files are as the last call left them; protected paths that an unfinished command made are moved away. Processes that you started have ended; start again what you still need.';

/**
 * Replaces `restartedText` when the folder of the attempt is gone, or is on the machine of a server
 * that died.
 */
const newFolderText =
  'The server stopped in the meantime, and another one goes on in a new folder. Nothing that you changed before is there: look, and do again what is still needed. Processes that you started have ended.';

/** In its place where another server had the folder, and all of it came here. */
const movedText =
  'The server stopped in the meantime, and another one goes on in a new folder, with all that you changed. Files that git ignores are not there, unless they were set up again. Processes that you started have ended; start again what you still need.';

/** In its place where the last changes did not come along. */
const partText =
  'The server stopped in the meantime, and another one goes on in a new folder. It has what you changed, but not your last changes: look, and do again what is missing. Processes that you started have ended.';

const newFolderLog = {
  level: 'warn',
  message:
    'goes on in a new folder: the one that it had is gone, or with another server; what it changed there is not here',
} as const;

type Folder = Pick<OpenWorkspace, 'isNew' | 'taken' | 'lacksWork'>;

const moved = { level: 'info', message: 'goes on here with what it had changed on another server' };
const movedPart = {
  level: 'warn',
  message: 'goes on here with what it had changed on another server, without its last changes',
};

/** Texts for the log and for the agent on the folder of an attempt that goes on. */
export const folderTexts = ({ isNew, taken, lacksWork = false }: Folder) => {
  const [log, left] = [taken?.notes ?? [], taken?.has ?? null];
  const notes = log.map((message) => ({ level: 'info', message }));
  if (left === 'step' && lacksWork) return { text: partText, logs: [...notes, movedPart] };
  if (left === 'step') return { text: movedText, logs: [...notes, moved] };
  if (lacksWork && !isNew) return { text: partText, logs: notes };
  return isNew
    ? { text: newFolderText, logs: [...notes, newFolderLog] }
    : { text: restartedText, logs: notes };
};

const unknownOutcome =
  'The server stopped while this call was running. Its outcome is unknown: look before you do it again.';

export interface ToolCallPorts {
  readonly workspace: Pick<Workspace, 'mode' | 'alone'>;
  readonly emit: (
    key: Pick<AttemptInput, 'taskId' | 'attempt'>,
    type: EventType,
    data: unknown,
  ) => void;
  readonly sandbox: Sandbox;
  readonly networkOf: (attempt: AttemptInput, user: { readonly kind: 'commands' }) => Network;
  readonly environmentOf: (
    attempt: Pick<AttemptInput, 'taskId' | 'attempt'>,
  ) => Readonly<Record<string, string>>;
  readonly logs: Pick<Results, 'openLog' | 'logsOf'>;
  readonly images: Pick<Images, 'keepRead'>;
  readonly onInterrupted: () => OnInterrupted;
}

/** Arguments and outputs in frames and questions are cut to this length. */
export const maxShownLength = 2_000;

const questionIn = (results: readonly CallResult[]): string | null => {
  const questions = results.flatMap(({ question }) => (question === null ? [] : [question]));
  return questions.length === 0 ? null : questions.join('\n\n');
};

/** The fault of the last call, when no call of the turn was well-formed. */
const malformedIn = (results: readonly CallResult[]): string | null =>
  results.every(({ malformed }) => malformed) ? (results.at(-1)?.text ?? null) : null;

type RecordResult = (call: ToolCall, result: CallResult) => Promise<void>;

/** Other servers can take the changes of a call before its result is known. */
const createRecordResult =
  ({ steps, keepWork }: Session, turn: number, signal: AbortSignal): RecordResult =>
  async (call, result) => {
    if (mayChangeFiles(call.tool)) await keepWork(steps.keyOf(turn, call.id), signal);
    await steps.recordCallResult(turn, call, result);
  };

/**
 * Records each call as a step: its intent before it runs, its result before anything follows from
 * it.
 */
const createCallObserver = (
  emit: ToolCallPorts['emit'],
  { turn, taskId, attempt }: ActInput,
  steps: Pick<ToolCallSteps, 'recordCall'>,
  recordResult: RecordResult,
  signal: AbortSignal,
): CallObserver => {
  const key = { taskId, attempt };
  const begun = new Set<string>();
  return {
    start: async (call, args) => {
      const text = JSON.stringify(args ?? call.arguments).slice(0, maxShownLength);
      emit(key, 'tool_start', { call_id: call.id, tool: call.tool, arguments: text });
      // Not recorded, so the next server makes this call.
      if (signal.aborted) return;
      await steps.recordCall(turn, call);
      begun.add(call.id);
    },
    output: (call, chunk) => emit(key, 'tool_output', { call_id: call.id, tool: call.tool, chunk }),
    end: async (call, result) => {
      const { callId, tool, ok, durationMs, text } = result;
      const output = text.slice(0, maxShownLength);
      emit(key, 'tool_end', { call_id: callId, tool, ok, duration_ms: durationMs, output });
      if (begun.has(call.id)) await recordResult(call, result);
    },
  };
};

/** A person's decision replaces a lost result. Null for a call that has one, or may be made. */
const lostResult = (
  call: ToolCall,
  onInterrupted: ToolCallPorts['onInterrupted'],
  { turn, decision }: ActInput,
  steps: ToolCallSteps,
): CallResult | null => {
  if (steps.call(turn, call.id)?.result !== null) return null;
  if (isRepeatable(call.tool) || onInterrupted() === 'repeat' || isRepeat(decision)) return null;
  const text = `${unknownOutcome}${decision === null ? '' : ` A person says: ${decision}`}`;
  const ended = { callId: call.id, tool: call.tool, ok: false, text, durationMs: 0 };
  return { ...ended, finish: null, question: null, malformed: false };
};

/** An agent that does not answer the comments of a review after two reminders may end without. */
const remindersAtMost = 2;
const toldOften = ({ conversation }: Session): boolean =>
  conversation.messages.filter(
    (message) => message.role === 'tool' && message.text.startsWith(answersMissing),
  ).length >= remindersAtMost;

export const createToolCalls = (ports: ToolCallPorts) => {
  const { workspace, emit, logs } = ports;

  /** Commands may also read what the repository needs, and the logs of earlier commands. */
  const readablePaths = ({ workspace: { readable }, task }: Session): readonly string[] => {
    const folder = logs.logsOf(task.id);
    return folder === null ? readable : [...readable, folder];
  };
  const contextOf = (
    session: Session,
    input: ActInput,
    callNumber: number,
    signal: AbortSignal,
  ): Omit<ToolContext, 'emit'> => ({
    root: session.workspace.root,
    readable: readablePaths(session),
    git: session.workspace.git,
    isOwn: workspace.mode === 'worktree',
    held: session.workspace.held ?? [],
    signal,
    comments: toldOften(session) ? [] : (input.review?.comments.map(({ id }) => id) ?? []),
    env: ports.environmentOf(input),
    sandbox: ports.sandbox,
    network: ports.networkOf(input, { kind: 'commands' }),
    keepImage: async (image, bytes) =>
      ports.images.keepRead(input.taskId, input.attempt, image, bytes),
    openLog: (fromBytes) =>
      logs.openLog(input.taskId, input.attempt, `${input.turn}.${callNumber}`, fromBytes),
  });

  return async (session: Session, input: ActInput, signal: AbortSignal): Promise<Acted> => {
    const { conversation, steps, profile, mcp } = session;
    mcp.allow(input.allowed);
    const calls = conversation.pendingCalls();
    const recordResult = createRecordResult(session, input.turn, signal);
    for (const call of calls) {
      const result = lostResult(call, ports.onInterrupted, input, steps);
      // The next server must find it, too: a conversation has a result for each call.
      if (result !== null) await recordResult(call, result);
    }
    const executor = createExecutor({
      tools: profile.tools,
      more: mcp.tools(),
      denied: input.denied,
      context: ({ id }) =>
        contextOf(session, input, calls.findIndex((call) => call.id === id) + 1, signal),
      alone: (work) =>
        workspace.alone(work, { signal, onWait: () => emit(input, 'log', folderWaitLog) }),
      withInstructions: session.withInstructions,
      recall: ({ id }) => steps.call(input.turn, id)?.result ?? null,
      observe: createCallObserver(emit, input, steps, recordResult, signal),
    });
    const results = await executor.run(calls);
    conversation.addResults(results);
    const finished = results.find(({ finish }) => finish !== null)?.finish ?? null;
    // What they may still write is not part of the work.
    if (finished !== null) await mcp.close();
    // The sandbox has already tried again to move away what was left; now a person must.
    const left = ports.sandbox.shared?.unsettled(session.workspace.root) ?? null;
    if (left !== null && results.some(({ tool }) => tool === bashTool.name)) throw new Error(left);
    return {
      calls: calls.length,
      finish: finished,
      question: questionIn(results),
      repeats: conversation.repeats(),
      malformed: malformedIn(results),
    };
  };
};
