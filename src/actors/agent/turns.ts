import type { Acted, Compacted, Prepared, Thought } from '../../machines/agent-context.ts';
import type {
  ActInput,
  CompactInput,
  PrepareInput,
  ThinkInput,
} from '../../machines/agent-selectors.ts';
import {
  type AttemptInput,
  type AttemptKey,
  attemptKey,
  type Role,
  type TaskId,
} from '../../machines/task.ts';
import type { OpenAttemptMcp } from './attempt-mcp.ts';
import { createCompactor } from './compactor.ts';
import {
  folderTexts,
  interruptedFailure,
  type OnInterrupted,
  questionAbout,
} from './interrupted-calls.ts';
import { createKeepWork } from './keep-work.ts';
import { countCutCall, createModelCall, type ModelCallPorts } from './model-call.ts';
import { type AttemptPorts, openAttempt } from './open-attempt.ts';
import type { RoleProfile } from './roles.ts';
import { createSession, type Session, unclearCalls } from './session.ts';
import { createThink } from './think.ts';
import { createToolCalls, maxShownLength, type ToolCallPorts } from './tool-calls.ts';
import type { BegunCall } from './turn-steps.ts';

export interface TurnPorts {
  readonly attempt: AttemptPorts;
  readonly model: ModelCallPorts;
  readonly tools: ToolCallPorts;
  readonly openMcp: OpenAttemptMcp;
  readonly profileOf: (role: Role) => RoleProfile;
  /** Ends processes of the attempt that survived an earlier server. */
  readonly endLeftovers: (taskId: TaskId, attempt: number) => Promise<void>;
}

/** The slots of the agent machine, for attempts that our own loop works on. */
export interface AgentTurns {
  prepare(input: PrepareInput, signal: AbortSignal): Promise<Prepared>;
  think(input: ThinkInput, signal: AbortSignal): Promise<Thought>;
  compact(input: CompactInput, signal: AbortSignal): Promise<Compacted>;
  act(input: ActInput, signal: AbortSignal): Promise<Acted>;
  /** Resolves when nothing that the attempt started runs any more. */
  forget(key: AttemptKey): Promise<void>;
  /** As `forget`, of every attempt. */
  forgetAll(): Promise<void>;
}

const prepareInterruptedCalls = (
  calls: readonly BegunCall[],
  policy: OnInterrupted,
): Omit<Prepared, 'conflicts'> => {
  if (calls.length === 0 || policy === 'repeat') return { question: null, failure: null };
  const shown = calls
    .map(({ call }) => `${call.tool} ${call.arguments.slice(0, maxShownLength)}`)
    .join('; ');
  if (policy === 'ask') return { question: questionAbout(shown), failure: null };
  const facts = { interrupted: true, calls: shown };
  return { question: null, failure: { ...interruptedFailure, facts } };
};

export const createAgentTurns = (ports: TurnPorts): AgentTurns => {
  const sessions = new Map<AttemptKey, Session>();
  const sessionOf = ({ taskId, attempt }: AttemptInput): Session => {
    const session = sessions.get(attemptKey(taskId, attempt));
    if (session === undefined)
      throw new Error(`attempt ${attempt} of ${taskId} was not prepared in this process`);
    return session;
  };

  const forget = async (key: AttemptKey): Promise<void> => {
    const session = sessions.get(key);
    sessions.delete(key);
    await session?.mcp.close();
  };

  const callModel = createModelCall(ports.model);
  const think = createThink(callModel, ports.model);
  const compact = createCompactor(callModel, ports.model);
  const act = createToolCalls(ports.tools);

  return {
    prepare: async ({ turns, resumeAt, ...attempt }, signal) => {
      const {
        first,
        failure,
        notes: setUpNotes,
        ...opened
      } = await openAttempt(attempt, ports.attempt, signal);
      const { conflicts } = opened.workspace;
      if (failure !== null) return { question: null, failure, conflicts };
      // A new attempt has left nothing.
      if (resumeAt !== null || turns > 0) await ports.endLeftovers(attempt.taskId, attempt.attempt);
      // `forget` has already run for an attempt that was stopped meanwhile.
      signal.throwIfAborted();
      const key = attemptKey(attempt.taskId, attempt.attempt);
      const isRestarted = resumeAt !== null && !sessions.has(key);
      const { text, logs } = folderTexts(opened.workspace);
      if (isRestarted) for (const told of logs) ports.attempt.emit(attempt, 'log', told);
      const restarted = isRestarted ? [text, ...setUpNotes] : [];
      await forget(key);
      const profile = ports.profileOf(attempt.role);
      const mcp = await ports.openMcp(attempt, opened.workspace, signal);
      if (signal.aborted) await mcp.close();
      signal.throwIfAborted();
      const notes = [...restarted, ...mcp.notes];
      const keepWork = createKeepWork(ports.attempt, attempt);
      const input = { ...opened, profile, mcp, keepWork, turns, resumeAt, notes };
      const session = createSession(input, first);
      const cut = isRestarted
        ? await countCutCall(ports.model, session, { ...attempt, turns })
        : null;
      sessions.set(key, session);
      const interrupted = prepareInterruptedCalls(unclearCalls(input), ports.tools.onInterrupted());
      return { ...interrupted, conflicts, cut };
    },
    think: (input, signal) => think(sessionOf(input), input, signal),
    compact: (input, signal) => compact(sessionOf(input), input, signal),
    act: (input, signal) => act(sessionOf(input), input, signal),
    forget,
    forgetAll: async () => void (await Promise.all([...sessions.keys()].map(forget))),
  };
};
