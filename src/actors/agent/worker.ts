import type { Acted, Thought } from '../../machines/agent-context.ts';
import {
  type AttemptKey,
  attemptKey,
  type Failure,
  type Role,
  type RunOptions,
  type TaskId,
} from '../../machines/task.ts';
import type { TrackedTask } from '../../machines/tracked-task.ts';
import type { EventType } from '../events.ts';
import type { Model, ModelEvent, ModelRequest } from '../model/port.ts';
import type { Workspace } from '../workspace/port.ts';
import { type Conversation, createConversation } from './conversation.ts';
import { createExecutor, type Executor } from './executor.ts';
import { systemPrompt, taskPrompt } from './prompt.ts';
import { roleProfiles } from './roles.ts';
import { createTextGatherer } from './text-gatherer.ts';

export interface Seat {
  readonly taskId: TaskId;
  readonly attempt: number;
  readonly role: Role;
  readonly options: RunOptions;
}

export interface WorkerPorts {
  readonly workspace: Workspace;
  readonly chooseModel: (options: RunOptions, role: Role) => { readonly model: Model; readonly name: string };
  readonly findTask: (taskId: TaskId) => Promise<TrackedTask | null>;
  readonly readResults: (taskId: TaskId) => Promise<string | null>;
  readonly emit: (key: Pick<Seat, 'taskId' | 'attempt'>, type: EventType, data: unknown) => void;
  /** Work that must have ended before the attempt counts as gone. */
  readonly track: <Result>(key: AttemptKey, work: Promise<Result>) => Promise<Result>;
  readonly environment: Readonly<Record<string, string>>;
  readonly maxTokens: number;
  readonly now: () => number;
}

/** The three slots of the agent machine: what an attempt does between its transitions. */
export interface AgentWorker {
  prepare(seat: Seat, signal: AbortSignal): Promise<void>;
  think(seat: Seat & { turn: number; nudge: boolean }, signal: AbortSignal): Promise<Thought>;
  act(seat: Seat & { turn: number }, signal: AbortSignal): Promise<Acted>;
  /** Forgets the conversation of an attempt that is over. */
  forget(key: AttemptKey): void;
}

interface Desk {
  readonly task: TrackedTask;
  readonly root: string;
  readonly system: string;
  readonly conversation: Conversation;
}

const nudgeText = 'You answered without calling a tool. Go on with the task, or call finish when you are done.';
const shownArguments = 2_000;

const silent: Failure = { code: 'model_failed', message: 'the model did not answer', facts: {}, retryable: true };

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

  const executorFor = (seat: Seat, desk: Desk, signal: AbortSignal): Executor =>
    createExecutor({
      tools: roleProfiles[seat.role].tools,
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
      desks.set(attemptKey(seat.taskId, seat.attempt), {
        task,
        root,
        system: systemPrompt(roleProfiles[seat.role], roleProfiles[seat.role].tools),
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

    think: async ({ turn, nudge, ...seat }, signal) => {
      const desk = deskOf(seat);
      const { model, name } = ports.chooseModel(seat.options, seat.role);
      if (nudge) desk.conversation.say(nudgeText);
      const startedAt = ports.now();
      ports.emit(seat, 'api_call_start', { turn, model: name });
      const request: ModelRequest = {
        model: name,
        asker: { taskId: seat.taskId, role: seat.role, title: desk.task.title, attempt: seat.attempt },
        system: desk.system,
        messages: desk.conversation.messages,
        tools: executorFor(seat, desk, signal).specs,
        maxTokens: ports.maxTokens,
      };
      const last = await ports.track(attemptKey(seat.taskId, seat.attempt), ask(seat, request, model, signal));
      const finished = { turn, model: name, duration_ms: ports.now() - startedAt };
      if (last?.type !== 'answered') {
        const failure = last?.type === 'failed' ? last.failure : silent;
        ports.emit(seat, 'api_call_complete', { ...finished, ok: false, error: failure });
        return { kind: 'failed', failure };
      }
      desk.conversation.answer(last.text, last.truncated ? [] : last.calls);
      const { inputTokens, outputTokens, cachedTokens } = last.usage;
      const tokens = { input_tokens: inputTokens, output_tokens: outputTokens, cached_tokens: cachedTokens };
      ports.emit(seat, 'api_call_complete', { ...finished, ok: true, ...tokens });
      ports.emit(seat, 'usage', { turn, ...tokens });
      return {
        kind: last.truncated ? 'truncated' : last.calls.length > 0 ? 'calls' : 'answer',
        tools: last.calls.map(({ tool }) => tool),
        inputTokens,
        outputTokens,
        cachedTokens,
      };
    },

    act: async ({ turn: _, ...seat }, signal) => {
      const desk = deskOf(seat);
      const calls = desk.conversation.pendingCalls();
      const work = executorFor(seat, desk, signal).run(calls);
      const results = await ports.track(attemptKey(seat.taskId, seat.attempt), work);
      desk.conversation.results(results);
      return {
        calls: calls.length,
        finish: results.find(({ finish }) => finish !== null)?.finish ?? null,
        repeats: desk.conversation.repeats(),
      };
    },

    forget: (key) => {
      desks.delete(key);
    },
  };
};
