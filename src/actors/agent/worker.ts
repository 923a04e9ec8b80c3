import type { Acted, ShownCall, Thought } from '../../machines/agent-context.ts';
import type { ActInput, Seat, ThinkInput } from '../../machines/agent-setup.ts';
import { type AttemptKey, attemptKey, type Failure, type Role, type TaskId } from '../../machines/task.ts';
import type { TrackedTask } from '../../machines/tracked-task.ts';
import type { EventType } from '../events.ts';
import type { Model, ModelEvent, ModelRequest, ModelUsage, ToolCall } from '../model/port.ts';
import { costOf, type Price } from '../settings.ts';
import type { Workspace } from '../workspace/port.ts';
import { type Conversation, createConversation } from './conversation.ts';
import { createExecutor, type Executor } from './executor.ts';
import { systemPrompt, taskPrompt } from './prompt.ts';
import type { RoleProfile } from './roles.ts';
import { createTextGatherer } from './text-gatherer.ts';
import type { CallResult } from './tools/port.ts';

export interface WorkerPorts {
  readonly workspace: Workspace;
  readonly chooseModel: (seat: Seat) => {
    readonly model: Model;
    readonly name: string;
    readonly price: Price | undefined;
  };
  readonly profileOf: (role: Role) => RoleProfile;
  readonly findTask: (taskId: TaskId) => Promise<TrackedTask | null>;
  readonly readResults: (taskId: TaskId) => Promise<string | null>;
  readonly emit: (key: Pick<Seat, 'taskId' | 'attempt'>, type: EventType, data: unknown) => void;
  /** Work that must have ended before the attempt counts as gone. */
  readonly track: <Result>(key: AttemptKey, work: Promise<Result>) => Promise<Result>;
  readonly environment: Readonly<Record<string, string>>;
  readonly maxTokens: () => number;
  readonly now: () => number;
}

/** The three slots of the agent machine: what an attempt does between its transitions. */
export interface AgentWorker {
  prepare(seat: Seat, signal: AbortSignal): Promise<void>;
  think(input: ThinkInput, signal: AbortSignal): Promise<Thought>;
  act(input: ActInput, signal: AbortSignal): Promise<Acted>;
  /** Forgets the conversation of an attempt that is over. */
  forget(key: AttemptKey): void;
}

interface Desk {
  readonly task: TrackedTask;
  readonly profile: RoleProfile;
  readonly root: string;
  readonly system: string;
  readonly conversation: Conversation;
}

const nudgeText = 'You answered without calling a tool. Go on with the task, or call finish when you are done.';
const shownArguments = 2_000;

const silent: Failure = { code: 'model_failed', message: 'the model did not answer', facts: {}, retryable: true };

const shown = ({ id, tool, arguments: text }: ToolCall): ShownCall => ({
  call_id: id,
  tool,
  arguments: text.slice(0, shownArguments),
});

const kindOf = ({ truncated, calls }: Extract<ModelEvent, { type: 'answered' }>) => {
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

  const prerequisites = async (task: TrackedTask) =>
    Promise.all(
      task.dependencies.map(async (id) => ({
        id,
        title: (await ports.findTask(id))?.title ?? id,
        results: await ports.readResults(id),
      })),
    );

  const executorFor = (seat: Seat, desk: Desk, signal: AbortSignal, denied: ActInput['denied'] = null): Executor =>
    createExecutor({
      tools: desk.profile.tools,
      denied,
      context: { root: desk.root, signal, env: ports.environment },
      observe: {
        start: (call, args) =>
          ports.emit(seat, 'tool_start', {
            call_id: call.id,
            tool: call.tool,
            arguments: JSON.stringify(args ?? call.arguments).slice(0, shownArguments),
          }),
        output: (call, chunk) => ports.emit(seat, 'tool_output', { call_id: call.id, tool: call.tool, chunk }),
        end: (result) =>
          ports.emit(seat, 'tool_end', {
            call_id: result.callId,
            tool: result.tool,
            ok: result.ok,
            duration_ms: result.durationMs,
            output: result.text.slice(0, shownArguments),
          }),
      },
    });

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

  return {
    prepare: async (seat) => {
      const task = await ports.findTask(seat.taskId);
      if (task === null) throw new Error(`task ${seat.taskId} is gone from the tracker`);
      const { root } = await ports.workspace.open(seat);
      const profile = ports.profileOf(seat.role);
      desks.set(attemptKey(seat.taskId, seat.attempt), {
        task,
        profile,
        root,
        system: systemPrompt(profile, profile.tools),
        conversation: createConversation(
          taskPrompt({
            id: task.id,
            title: task.title,
            description: task.description,
            dependencies: await prerequisites(task),
          }),
        ),
      });
    },

    think: async ({ turn, nudge, answer, ...seat }, signal) => {
      const desk = deskOf(seat);
      const { model, name, price } = ports.chooseModel(seat);
      if (nudge) desk.conversation.say(nudgeText);
      if (answer !== null) desk.conversation.say(`A person answers:\n\n${answer}`);
      const startedAt = ports.now();
      ports.emit(seat, 'api_call_start', { turn, model: name });
      const request: ModelRequest = {
        model: name,
        asker: { taskId: seat.taskId, role: seat.role, title: desk.task.title, attempt: seat.attempt },
        system: desk.system,
        messages: desk.conversation.messages,
        tools: executorFor(seat, desk, signal).specs,
        maxTokens: ports.maxTokens(),
      };
      const last = await ports.track(attemptKey(seat.taskId, seat.attempt), ask(seat, request, model, signal));
      const finished = { turn, model: name, duration_ms: ports.now() - startedAt };
      if (last?.type !== 'answered') {
        const failure = last?.type === 'failed' ? last.failure : silent;
        ports.emit(seat, 'api_call_complete', { ...finished, ok: false, error: failure });
        return { kind: 'failed', failure };
      }
      const calls = last.truncated ? [] : last.calls;
      desk.conversation.answer(last.text, calls);
      const costUsd = costOf(price, last.usage);
      const spent = spentOn(last.usage, costUsd);
      ports.emit(seat, 'api_call_complete', { ...finished, ok: true, ...spent });
      ports.emit(seat, 'usage', { turn, ...spent });
      return { kind: kindOf(last), calls: calls.map(shown), ...last.usage, costUsd };
    },

    act: async ({ turn: _, denied, ...seat }, signal) => {
      const desk = deskOf(seat);
      const calls = desk.conversation.pendingCalls();
      const work = executorFor(seat, desk, signal, denied).run(calls);
      const results = await ports.track(attemptKey(seat.taskId, seat.attempt), work);
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
