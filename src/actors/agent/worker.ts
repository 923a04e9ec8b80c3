import type { Acted, Prepared, ShownCall, Thought } from '../../machines/agent-context.ts';
import type { ActInput, PrepareInput, Seat, ThinkInput } from '../../machines/agent-setup.ts';
import { type AttemptKey, attemptKey, type Failure, type Role, type TaskId } from '../../machines/task.ts';
import type { EventType } from '../events.ts';
import type { Model, ModelEvent, ModelRequest, ModelUsage, ToolCall } from '../model/port.ts';
import type { Sandbox } from '../sandbox/port.ts';
import { costOf, type OnInterrupted, type Price } from '../settings.ts';
import { type Desk, setDesk, unclearCalls } from './desk.ts';
import { type CallObserver, createExecutor, toolSpecs } from './executor.ts';
import { interrupted, isRepeat, questionAbout, unknownEnd } from './interrupted.ts';
import { type OpeningPorts, open } from './opening.ts';
import type { RoleProfile } from './roles.ts';
import type { Answered, BegunCall } from './steps.ts';
import { createTextGatherer } from './text-gatherer.ts';
import type { CallResult } from './tools/port.ts';
import { repeatableTools } from './tools/toolbox.ts';

export interface WorkerPorts extends OpeningPorts {
  /** What holds the commands of an attempt. */
  readonly sandboxOf: (seat: Pick<Seat, 'role'>) => Sandbox;
  readonly chooseModel: (seat: Seat) => {
    readonly model: Model;
    readonly name: string;
    readonly price: Price | undefined;
  };
  readonly profileOf: (role: Role) => RoleProfile;
  readonly emit: (key: Pick<Seat, 'taskId' | 'attempt'>, type: EventType, data: unknown) => void;
  /** Work that must have ended before the attempt counts as gone. */
  readonly track: <Result>(key: AttemptKey, work: Promise<Result>) => Promise<Result>;
  /** The environment for commands of an attempt. */
  readonly environmentOf: (seat: Pick<Seat, 'taskId' | 'attempt'>) => Readonly<Record<string, string>>;
  /** Ends what an earlier server left running of an attempt. */
  readonly endLeftovers: (taskId: TaskId, attempt: number) => Promise<void>;
  readonly maxTokens: () => number;
  /** What happens to a call that was at work when a server ended. */
  readonly onInterrupted: () => OnInterrupted;
  readonly now: () => number;
}

/** The three slots of the agent machine: what an attempt does between its transitions. */
export interface AgentWorker {
  prepare(input: PrepareInput, signal: AbortSignal): Promise<Prepared>;
  think(input: ThinkInput, signal: AbortSignal): Promise<Thought>;
  act(input: ActInput, signal: AbortSignal): Promise<Acted>;
  /** Forgets the conversation of an attempt that is over. */
  forget(key: AttemptKey): void;
}

const nudgeText = 'You answered without calling a tool. Go on with the task, or call finish when you are done.';
const spoken = {
  person: (text: string) => `A person answers:\n\n${text}`,
  check: (text: string) => `Your work is not accepted yet. ${text}\n\nMend it, then call finish again.`,
} as const;
const shownArguments = 2_000;

const silent: Failure = { code: 'model_failed', message: 'the model did not answer', facts: {}, retryable: true };

const shown = ({ id, tool, arguments: text }: ToolCall): ShownCall => ({
  call_id: id,
  tool,
  arguments: text.slice(0, shownArguments),
});

const kindOf = ({ truncated, calls }: Answered) => {
  if (truncated) return 'truncated' as const;
  return calls.length > 0 ? ('calls' as const) : ('answer' as const);
};

const spentOn = ({ inputTokens, outputTokens, cachedTokens }: ModelUsage, costUsd: number | null) => ({
  input_tokens: inputTokens,
  output_tokens: outputTokens,
  cached_tokens: cachedTokens,
  ...(costUsd === null ? {} : { cost_usd: costUsd }),
});

/** Several questions of one turn are put as one. */
const questionIn = (results: readonly CallResult[]): string | null => {
  const questions = results.flatMap(({ question }) => (question === null ? [] : [question]));
  return questions.length === 0 ? null : questions.join('\n\n');
};

export const createAgentWorker = (ports: WorkerPorts): AgentWorker => {
  const desks = new Map<AttemptKey, Desk>();
  const deskOf = ({ taskId, attempt }: Seat): Desk => {
    const desk = desks.get(attemptKey(taskId, attempt));
    if (desk === undefined) throw new Error(`attempt ${attempt} of ${taskId} was not prepared in this process`);
    return desk;
  };

  /** Each call is a step: begun before it is made, ended before anything follows; frames tell of both. */
  const observer = (input: ActInput, { steps }: Desk, signal: AbortSignal): CallObserver => {
    const { turn, ...seat } = input;
    const begun = new Set<string>();
    return {
      start: (call, args) => {
        const text = JSON.stringify(args ?? call.arguments).slice(0, shownArguments);
        ports.emit(seat, 'tool_start', { call_id: call.id, tool: call.tool, arguments: text });
        // What is not begun because the server stops is made by the next one.
        if (signal.aborted) return;
        steps.act(turn, call);
        begun.add(call.id);
      },
      output: (call, chunk) => ports.emit(seat, 'tool_output', { call_id: call.id, tool: call.tool, chunk }),
      end: (call, { callId, tool, ok, durationMs, text, ...more }) => {
        const output = text.slice(0, shownArguments);
        ports.emit(seat, 'tool_end', { call_id: callId, tool, ok, duration_ms: durationMs, output });
        if (begun.has(call.id)) steps.actEnded(turn, call, { callId, tool, ok, durationMs, text, ...more });
      },
    };
  };

  /** What is known of a call from an earlier process: its result, or what a person said about one without. */
  const recall = ({ turn, decision }: ActInput, { steps }: Desk) => {
    return (call: ToolCall): CallResult | null => {
      const begun = steps.call(turn, call.id);
      if (begun === null || begun.result !== null) return begun?.result ?? null;
      if (repeatableTools.has(call.tool) || ports.onInterrupted() === 'repeat' || isRepeat(decision)) return null;
      const text = `${unknownEnd}${decision === null ? '' : ` A person says: ${decision}`}`;
      return { callId: call.id, tool: call.tool, ok: false, text, durationMs: 0, finish: null, question: null };
    };
  };

  /** Calls that were at work when a server ended: policy says how to go on. */
  const unclear = (calls: readonly BegunCall[]): Prepared => {
    const policy = ports.onInterrupted();
    if (calls.length === 0 || policy === 'repeat') return { question: null, failure: null };
    const what = calls.map(({ call }) => `${call.tool} ${call.arguments.slice(0, shownArguments)}`).join('; ');
    if (policy === 'ask') return { question: questionAbout(what), failure: null };
    return { question: null, failure: { ...interrupted, facts: { interrupted: true, calls: what } } };
  };

  const ask = async (seat: Seat, request: ModelRequest, model: Model, signal: AbortSignal) => {
    const text = createTextGatherer((delta) => ports.emit(seat, 'text_delta', { text: delta }));
    let last: ModelEvent | null = null;
    try {
      for await (const event of model.ask(request, signal)) {
        if (event.type === 'text') text.add(event.delta);
        else last = event;
      }
    } finally {
      text.end();
    }
    return last;
  };

  /** One call of the model, as a step: an answer is durable before anything follows from it. */
  const call = async (desk: Desk, seat: Seat, turn: number, said: readonly string[], signal: AbortSignal) => {
    const { model, name, price } = ports.chooseModel(seat);
    const startedAt = ports.now();
    const key = attemptKey(seat.taskId, seat.attempt);
    ports.emit(seat, 'api_call_start', { turn, model: name });
    desk.steps.think(turn, said);
    const request: ModelRequest = {
      model: name,
      asker: { taskId: seat.taskId, role: seat.role, title: desk.task.title, attempt: seat.attempt },
      idempotencyKey: `${key}/think:${turn}`,
      system: desk.system,
      messages: desk.conversation.messages,
      tools: toolSpecs(desk.profile.tools),
      maxTokens: ports.maxTokens(),
    };
    const last = await ports.track(key, ask(seat, request, model, signal));
    const finished = { turn, model: name, duration_ms: ports.now() - startedAt };
    if (last?.type !== 'answered') {
      const failure = last?.type === 'failed' ? last.failure : silent;
      ports.emit(seat, 'api_call_complete', { ...finished, ok: false, error: failure });
      return { type: 'failed' as const, failure };
    }
    const spent = spentOn(last.usage, costOf(price, last.usage));
    ports.emit(seat, 'api_call_complete', { ...finished, ok: true, ...spent });
    ports.emit(seat, 'usage', { turn, ...spent });
    desk.steps.thinkEnded(turn, said, last);
    return last;
  };

  return {
    prepare: async ({ turns, resumeAt, ...seat }) => {
      const { first, ...opened } = await open(seat, ports);
      await ports.endLeftovers(seat.taskId, seat.attempt);
      const setting = { ...opened, profile: ports.profileOf(seat.role), turns, resumeAt };
      desks.set(attemptKey(seat.taskId, seat.attempt), setDesk(setting, first));
      return unclear(unclearCalls(setting));
    },

    think: async ({ turn, nudge, answer, ...seat }, signal) => {
      const desk = deskOf(seat);
      const said = [...(nudge ? [nudgeText] : []), ...(answer?.text == null ? [] : [spoken[answer.from](answer.text)])];
      desk.conversation.hear(turn, said);
      const known = desk.steps.thought(turn)?.answer ?? null;
      const taken = known ?? (await call(desk, seat, turn, said, signal));
      if (taken.type === 'failed') return { kind: 'failed', failure: taken.failure };
      const calls = taken.truncated ? [] : taken.calls;
      desk.conversation.answer(taken.text, calls);
      const costUsd = costOf(ports.chooseModel(seat).price, taken.usage);
      return { kind: kindOf(taken), calls: calls.map(shown), ...taken.usage, costUsd };
    },

    act: async (input, signal) => {
      const desk = deskOf(input);
      const calls = desk.conversation.pendingCalls();
      const executor = createExecutor({
        tools: desk.profile.tools,
        denied: input.denied,
        context: {
          root: desk.place.root,
          readable: desk.place.readable,
          signal,
          env: ports.environmentOf(input),
          sandbox: ports.sandboxOf(input),
        },
        alone: ports.workspace.alone,
        recall: recall(input, desk),
        observe: observer(input, desk, signal),
      });
      const results = await ports.track(attemptKey(input.taskId, input.attempt), executor.run(calls));
      desk.conversation.results(results);
      return {
        calls: calls.length,
        finish: results.find(({ finish }) => finish !== null)?.finish ?? null,
        question: questionIn(results),
        repeats: desk.conversation.repeats(),
      };
    },

    forget: (key) => {
      desks.delete(key);
    },
  };
};
