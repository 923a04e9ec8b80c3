import { isDeepStrictEqual } from 'node:util';
import {
  type AnyMachineSnapshot,
  type AnyStateMachine,
  createActor,
  type EventObject,
  initialTransition,
  transition,
} from 'xstate';
import { z } from 'zod';
import type { AgentStart } from '../../../machines/agent/agent-context.ts';
import { type AgentSnapshot, agentMachine } from '../../../machines/agent/agent-machine.ts';
import { type TaskSnapshot, taskMachine } from '../../../machines/task/task-machine.ts';
import { attemptKey, type TaskId } from '../../../machines/task.ts';
import type { ActorReads, Entry, EntryReads, HostedKind, SavedActor } from '../../store/port.ts';
import { persistedSnapshot, readEach } from '../snapshots.ts';

export interface ReplayedStep {
  readonly seq: number;
  /** RFC 3339 UTC. */
  readonly at: string;
  readonly attempt: number;
  readonly machine: 'task' | 'agent' | HostedKind;
  readonly event: string;
  readonly state: unknown;
  /** True when the journal recorded the same state. */
  readonly same: boolean;
}

/** Result of a replay: the states, computed again from the journal. */
interface Replay {
  readonly steps: readonly ReplayedStep[];
  readonly task: TaskSnapshot;
  /** The latest attempt's, or null. */
  readonly agent: AgentSnapshot | null;
}

interface Recorded {
  readonly machine: string;
  readonly value: unknown;
}

export const isTransition = ({ type, cause }: Pick<Entry, 'type' | 'cause'>): boolean =>
  type === 'snapshot' && cause !== null;

const initialAgent = (input: AgentStart): AgentSnapshot =>
  createActor(agentMachine, { input }).getSnapshot();

/** The first entry of an agent has its input; each later one has an event. */
const nextAgent = (
  before: AgentSnapshot | null,
  cause: EventObject & { input?: AgentStart },
): AgentSnapshot | null => {
  if (cause.type === 'xstate.init')
    return cause.input === undefined ? null : initialAgent(cause.input);
  return before === null
    ? null
    : (transition(agentMachine, before, cause as never)[0] as AgentSnapshot);
};

/** Runs the machines over a task's transitions, without effects. */
export const fold = (taskId: TaskId, entries: readonly Entry[]): Replay => {
  const agents = new Map<number, AgentSnapshot>();
  let task: TaskSnapshot = createActor(taskMachine, { input: { taskId } }).getSnapshot();
  let latest: AgentSnapshot | null = null;
  const steps = entries
    .filter(isTransition)
    .map(({ seq, at, attempt, data, cause }): ReplayedStep => {
      const recorded = JSON.parse(data) as Recorded;
      const event = JSON.parse(cause ?? '{}') as EventObject & { input?: AgentStart };
      const machine = recorded.machine === 'agent' ? 'agent' : 'task';
      let state: unknown = null;
      if (machine === 'task') {
        task = transition(taskMachine, task, event as never)[0] as TaskSnapshot;
        state = task.value;
      } else {
        const next = nextAgent(agents.get(attempt) ?? null, event);
        if (next !== null) agents.set(attempt, next);
        latest = next ?? latest;
        state = next?.value ?? null;
      }
      const same = JSON.stringify(state) === JSON.stringify(recorded.value);
      return {
        seq,
        at: new Date(at).toISOString(),
        attempt,
        machine,
        event: event.type,
        state,
        same,
      };
    });
  return { steps, task, agent: latest };
};

/** One sentence on the first state that is not as recorded; null: all are. */
export const wrongStep = (steps: readonly ReplayedStep[]): string | null => {
  const wrong = steps.find(({ same }) => !same);
  return wrong === undefined
    ? null
    : `at ${wrong.seq} the ${wrong.machine} comes to ${JSON.stringify(wrong.state)} by ${wrong.event}, which is not what was recorded`;
};

/** The journal of a task up to a seq; null: all of it. */
export const entriesUpTo = async (
  store: Pick<EntryReads, 'read'>,
  taskId: string,
  seq: number | null,
): Promise<readonly Entry[]> => {
  const all: Entry[] = [];
  for await (const entry of entriesOf(store, taskId)) {
    if (seq !== null && entry.seq > seq) break;
    all.push(entry);
  }
  return all;
};

interface State {
  readonly value: unknown;
  readonly context: unknown;
}

/** The order of the fields does not count: an absent one is added where it is set first. */
const isSameState = (text: string, replayed: State): boolean => {
  const saved: State = JSON.parse(text);
  const { value, context }: State = JSON.parse(JSON.stringify(replayed));
  return isDeepStrictEqual([saved.value, saved.context], [value, context]);
};

type DifferenceReads = Pick<EntryReads, 'read' | 'removed'> & Pick<ActorReads, 'actor'>;

const differenceIn = async (
  store: DifferenceReads,
  taskId: TaskId,
  saved: SavedActor,
  entries: readonly Entry[],
): Promise<string | null> => {
  const { steps, task, agent } = fold(taskId, entries);
  const wrong = wrongStep(steps);
  if (wrong !== null) return wrong;
  if (!isSameState(saved.snapshot, task))
    return `the saved state of the task is not what its journal makes of it (${JSON.stringify(task.value)})`;
  const savedAgent = await store.actor(attemptKey(taskId, task.context.attempt));
  if (agent === null || savedAgent === null || agent.context.attempt !== task.context.attempt)
    return null;
  return isSameState(savedAgent.snapshot, agent)
    ? null
    : `the saved state of its agent is not what its journal makes of it (${JSON.stringify(agent.value)})`;
};

const comparisonsAtMost = 5;

/**
 * One sentence on how the saved state differs from the replayed one; null when they are equal, and
 * when the task changed during each of five comparisons.
 */
export const differenceFrom = async (
  store: DifferenceReads,
  taskId: TaskId,
): Promise<string | null> => {
  for (let n = 0; n < comparisonsAtMost; n += 1) {
    const saved = await store.actor(taskId);
    // Without its beginning, a journal leads to no state.
    if (saved === null || (await store.removed(taskId)) !== null) return null;
    const entries = await entriesUpTo(store, taskId, null);
    const difference = await differenceIn(store, taskId, saved, entries);
    if (difference === null) return null;
    const after = entries.at(-1)?.seq ?? 0;
    const newer = await store.read({ taskId, after, limit: 1 });
    const { revision } = (await store.actor(taskId)) ?? { revision: 0 };
    if (newer.length === 0 && revision === saved.revision) return difference;
  }
  return null;
};

/** The name of an actor's row in the store; of a workflow also the label of its tasks. */
export const hostedKey = (kind: HostedKind, id: string): string => `${kind}:${id}`;
export const workflowKey = (workflowId: string): string => hostedKey('workflow', workflowId);

/** Cause of the first entry of an actor. */
export interface HostedStart extends EventObject {
  readonly type: 'xstate.init';
  readonly input: unknown;
}

interface ReplayedActor {
  readonly steps: readonly ReplayedStep[];
  /** Null without a first entry. */
  readonly snapshot: AnyMachineSnapshot | null;
}

const isStart = (event: EventObject): event is HostedStart => event.type === 'xstate.init';

/** Runs a chart over the entries of an actor, without effects. */
export const foldHosted = (
  kind: HostedKind,
  machine: AnyStateMachine,
  entries: readonly Entry[],
): ReplayedActor => {
  let snapshot: AnyMachineSnapshot | null = null;
  const steps: ReplayedStep[] = [];
  for (const { type, seq, at, data, cause } of entries) {
    if (type !== kind || cause === null) continue;
    const recorded: { readonly value: unknown } = JSON.parse(data);
    const event: EventObject = JSON.parse(cause);
    if (isStart(event)) [snapshot] = initialTransition(machine, event.input);
    else if (snapshot !== null) [snapshot] = transition(machine, snapshot, event);
    const state = snapshot?.value ?? null;
    steps.push({
      seq,
      at: new Date(at).toISOString(),
      attempt: 0,
      machine: kind,
      event: event.type,
      state,
      same: isDeepStrictEqual(state, recorded.value),
    });
  }
  return { steps, snapshot };
};

/** One sentence on how the saved state differs from the replayed one; null when they are equal. */
export const hostedDifference = async (
  store: Pick<ActorReads, 'actor'> & Pick<EntryReads, 'read'>,
  kind: HostedKind,
  id: string,
  { steps, snapshot }: ReplayedActor,
): Promise<string | null> => {
  const wrong = wrongStep(steps);
  if (wrong !== null) return wrong;
  const saved = await store.actor(hostedKey(kind, id));
  if (saved === null || snapshot === null) return null;
  const after = steps.at(-1)?.seq ?? 0;
  // It may have gone on meanwhile.
  if ((await store.read({ taskId: id, after, limit: 1 })).length > 0) return null;
  const [kept] = readEach([saved], persistedSnapshot);
  if (kept === undefined) return `the saved state of the ${kind} cannot be read`;
  const { value, context } = kept;
  const replayed = JSON.parse(JSON.stringify({ value: snapshot.value, context: snapshot.context }));
  return isDeepStrictEqual({ value, context }, replayed)
    ? null
    : `the saved state of the ${kind} is not what its journal makes of it (${JSON.stringify(snapshot.value)})`;
};

const entriesPerRead = 1_000;

/** The journal of a task, or of all tasks, oldest entry first. */
export async function* entriesOf(
  store: Pick<EntryReads, 'read'>,
  taskId?: string,
): AsyncGenerator<Entry> {
  for (let after = 0; ; ) {
    const entries = await store.read({
      taskId,
      after,
      limit: entriesPerRead,
    });
    yield* entries;
    const last = entries.at(-1);
    if (last === undefined || entries.length < entriesPerRead) return;
    after = last.seq;
  }
}

const toolEndSchema = z.looseObject({
  tool: z.string(),
  ok: z.boolean(),
  duration_ms: z.number(),
  call_id: z.string(),
});
const toolStartSchema = z.looseObject({ call_id: z.string(), arguments: z.string() });

const argumentsLength = 200;

/** One line for each tool call of an attempt, oldest first. */
export const readToolCallLog = async (
  store: Pick<EntryReads, 'read'>,
  taskId: string,
  attempt: number,
): Promise<readonly string[]> => {
  const started = new Map<string, string>();
  const lines: string[] = [];
  for await (const entry of entriesOf(store, taskId)) {
    if (entry.attempt !== attempt) continue;
    if (entry.type === 'tool_start') {
      const start = toolStartSchema.parse(JSON.parse(entry.data));
      started.set(start.call_id, start.arguments.slice(0, argumentsLength));
    }
    if (entry.type !== 'tool_end') continue;
    const end = toolEndSchema.parse(JSON.parse(entry.data));
    const at = new Date(entry.at).toISOString();
    lines.push(
      `${at} \`${end.tool}\` ${started.get(end.call_id) ?? ''} → ${end.ok ? 'ok' : 'not ok'}, ${end.duration_ms} ms`,
    );
  }
  return lines;
};
