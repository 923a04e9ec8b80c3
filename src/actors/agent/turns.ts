import type { Acted, Compacted, Prepared, ShownCall, Thought } from '../../machines/agent-context.ts';
import type { ActInput, CompactInput, PrepareInput, Seat, ThinkInput } from '../../machines/agent-selectors.ts';
import { type AttemptKey, attemptKey, type Role, type TaskId } from '../../machines/task.ts';
import { costOf, type OnInterrupted } from '../engine/settings.ts';
import type { Results } from '../files/results.ts';
import type { ToolCall } from '../model/port.ts';
import type { Sandbox } from '../sandbox/port.ts';
import type { CallResult } from '../tools/port.ts';
import { repeatableTools } from '../tools/toolbox.ts';
import { createCompactor } from './compactor.ts';
import { type CallObserver, createExecutor } from './executor.ts';
import { type AttemptPorts, folderWaitLog, openAttempt } from './first-message.ts';
import { interruptedFailure, isRepeat, questionAbout, unknownOutcome } from './interrupted-calls.ts';
import { createModelCall, type ModelCallPorts } from './model-call.ts';
import type { RoleProfile } from './roles.ts';
import { createSession, type Session, unclearCalls } from './session.ts';
import type { BegunCall, ModelAnswer } from './steps.ts';

export interface TurnPorts extends AttemptPorts, ModelCallPorts {
  /** What holds the commands of an attempt. */
  readonly sandboxOf: (seat: Pick<Seat, 'role' | 'options'>) => Sandbox;
  readonly profileOf: (role: Role) => RoleProfile;
  /** The environment for commands of an attempt. */
  readonly environmentOf: (seat: Pick<Seat, 'taskId' | 'attempt'>) => Readonly<Record<string, string>>;
  /** Ends what an earlier server left running of an attempt. */
  readonly endLeftovers: (taskId: TaskId, attempt: number) => Promise<void>;
  readonly logs: Pick<Results, 'openLog' | 'logsOf'>;
  /** What happens to a call that was at work when a server ended. */
  readonly onInterrupted: () => OnInterrupted;
}

/** The slots of the agent machine: what an attempt does between its transitions. */
export interface AgentTurns {
  prepare(input: PrepareInput, signal: AbortSignal): Promise<Prepared>;
  think(input: ThinkInput, signal: AbortSignal): Promise<Thought>;
  compact(input: CompactInput, signal: AbortSignal): Promise<Compacted>;
  act(input: ActInput, signal: AbortSignal): Promise<Acted>;
  /** Forgets the conversation of an attempt that is over. */
  forget(key: AttemptKey): void;
}

const nudges = {
  silent: 'You answered without calling a tool. Go on with the task, or call finish when you are done.',
  cut: 'Your answer was cut at its limit of length, so none of its calls was made. Go on in smaller steps: think shorter, and make long files in several pieces.',
} as const;
const answerText = {
  person: (text: string) => `A person answers:\n\n${text}`,
  nobody: (text: string) => `Nobody answered in time. This counts as the answer:\n\n${text}`,
  check: (text: string) => `Your work is not accepted yet. ${text}\n\nMend it, then call finish again.`,
} as const;
const maxArgumentsLength = 2_000;

const shownCall = ({ id, tool, arguments: text }: ToolCall): ShownCall => ({
  call_id: id,
  tool,
  arguments: text.slice(0, maxArgumentsLength),
});

const thoughtKind = ({ truncated, calls }: ModelAnswer) => {
  if (truncated) return 'truncated' as const;
  return calls.length > 0 ? ('calls' as const) : ('answer' as const);
};

/** Several questions of one turn are put as one. */
const questionIn = (results: readonly CallResult[]): string | null => {
  const questions = results.flatMap(({ question }) => (question === null ? [] : [question]));
  return questions.length === 0 ? null : questions.join('\n\n');
};

/** What was wrong with the last call of a turn in which none was well-formed. */
const malformedIn = (results: readonly CallResult[]): string | null =>
  results.every(({ malformed }) => malformed) ? (results.at(-1)?.text ?? null) : null;

export const createAgentTurns = (ports: TurnPorts): AgentTurns => {
  const desks = new Map<AttemptKey, Session>();
  const deskOf = ({ taskId, attempt }: Seat): Session => {
    const desk = desks.get(attemptKey(taskId, attempt));
    if (desk === undefined) throw new Error(`attempt ${attempt} of ${taskId} was not prepared in this process`);
    return desk;
  };

  /** Each call is a step: begun before it is made, ended before anything follows; frames tell of both. */
  const observer = (input: ActInput, { steps }: Session, signal: AbortSignal): CallObserver => {
    const { turn, ...seat } = input;
    const begun = new Set<string>();
    return {
      start: (call, args) => {
        const text = JSON.stringify(args ?? call.arguments).slice(0, maxArgumentsLength);
        ports.emit(seat, 'tool_start', { call_id: call.id, tool: call.tool, arguments: text });
        // What is not begun because the server stops is made by the next one.
        if (signal.aborted) return;
        steps.act(turn, call);
        begun.add(call.id);
      },
      output: (call, chunk) => ports.emit(seat, 'tool_output', { call_id: call.id, tool: call.tool, chunk }),
      end: (call, { callId, tool, ok, durationMs, text, ...more }) => {
        const output = text.slice(0, maxArgumentsLength);
        ports.emit(seat, 'tool_end', { call_id: callId, tool, ok, duration_ms: durationMs, output });
        if (begun.has(call.id)) steps.actEnded(turn, call, { callId, tool, ok, durationMs, text, ...more });
      },
    };
  };

  /** What is known of a call from an earlier process: its result, or what a person said about one without. */
  const recall = ({ turn, decision }: ActInput, { steps }: Session) => {
    return (call: ToolCall): CallResult | null => {
      const begun = steps.call(turn, call.id);
      if (begun === null || begun.result !== null) return begun?.result ?? null;
      if (repeatableTools.has(call.tool) || ports.onInterrupted() === 'repeat' || isRepeat(decision)) return null;
      const text = `${unknownOutcome}${decision === null ? '' : ` A person says: ${decision}`}`;
      const ended = { callId: call.id, tool: call.tool, ok: false, text, durationMs: 0 };
      return { ...ended, finish: null, question: null, malformed: false };
    };
  };

  /** Calls that were at work when a server ended: policy says how to go on. */
  const unclear = (calls: readonly BegunCall[]): Prepared => {
    const policy = ports.onInterrupted();
    if (calls.length === 0 || policy === 'repeat') return { question: null, failure: null };
    const what = calls.map(({ call }) => `${call.tool} ${call.arguments.slice(0, maxArgumentsLength)}`).join('; ');
    if (policy === 'ask') return { question: questionAbout(what), failure: null };
    return { question: null, failure: { ...interruptedFailure, facts: { interrupted: true, calls: what } } };
  };

  /** What commands may read beside the workspace: what its repository needs, and the logs of earlier commands. */
  const readableAt = ({ place, task }: Session): readonly string[] => {
    const logs = ports.logs.logsOf(task.id);
    return logs === null ? place.readable : [...place.readable, logs];
  };

  const ask = createModelCall(ports);
  const compact = createCompactor(ask, ports);

  /** One call of the model, as a step: an answer is durable before anything follows from it. */
  const call = async (desk: Session, seat: Seat, turn: number, said: readonly string[], signal: AbortSignal) => {
    desk.steps.think(turn, said);
    // Another conversation is another call, which must not be answered as the first.
    const step = `think:${turn}${desk.steps.compaction(turn) === null ? '' : ':compacted'}`;
    const last = await ask(desk, seat, { turn, step, messages: desk.conversation.messages }, signal);
    if (last.type === 'answered') desk.steps.thinkEnded(turn, said, last);
    return last;
  };

  return {
    prepare: async ({ turns, resumeAt, ...seat }, signal) => {
      const { first, ...opened } = await openAttempt(seat, ports, signal);
      // What is about to begin has left nothing.
      if (resumeAt !== null || turns > 0) await ports.endLeftovers(seat.taskId, seat.attempt);
      // Who was dismissed meanwhile has been forgotten already.
      signal.throwIfAborted();
      const setting = { ...opened, profile: ports.profileOf(seat.role), turns, resumeAt };
      desks.set(attemptKey(seat.taskId, seat.attempt), createSession(setting, first));
      return unclear(unclearCalls(setting));
    },

    think: async ({ turn, nudge, answer, ...seat }, signal) => {
      const desk = deskOf(seat);
      const said = [
        ...(nudge === null ? [] : [nudges[nudge]]),
        ...(answer?.text == null ? [] : [answerText[answer.from](answer.text)]),
      ];
      desk.conversation.hear(turn, said);
      const known = desk.steps.thought(turn)?.answer ?? null;
      const taken = known ?? (await call(desk, seat, turn, said, signal));
      if (taken.type === 'failed') return { kind: 'failed', failure: taken.failure };
      desk.conversation.answer(taken);
      const calls = desk.conversation.pendingCalls();
      const costUsd = costOf(ports.chooseModel(seat).price, taken.usage);
      return { kind: thoughtKind(taken), calls: calls.map(shownCall), ...taken.usage, costUsd };
    },

    compact: (input, signal) => compact(deskOf(input), input, signal),

    act: async (input, signal) => {
      const desk = deskOf(input);
      const calls = desk.conversation.pendingCalls();
      const executor = createExecutor({
        tools: desk.profile.tools,
        denied: input.denied,
        context: ({ id }) => ({
          root: desk.place.root,
          readable: readableAt(desk),
          git: desk.place.git,
          isOwn: ports.workspace.mode === 'worktree',
          signal,
          env: ports.environmentOf(input),
          sandbox: ports.sandboxOf(input),
          openLog: (fromBytes) => {
            const place = calls.findIndex((call) => call.id === id) + 1;
            return ports.logs.openLog(input.taskId, input.attempt, `${input.turn}.${place}`, fromBytes);
          },
        }),
        alone: (work) => ports.workspace.alone(work, { signal, onWait: () => ports.emit(input, 'log', folderWaitLog) }),
        recall: recall(input, desk),
        observe: observer(input, desk, signal),
      });
      const results = await executor.run(calls);
      desk.conversation.results(results);
      return {
        calls: calls.length,
        finish: results.find(({ finish }) => finish !== null)?.finish ?? null,
        question: questionIn(results),
        repeats: desk.conversation.repeats(),
        malformed: malformedIn(results),
      };
    },

    forget: (key) => {
      desks.delete(key);
    },
  };
};
