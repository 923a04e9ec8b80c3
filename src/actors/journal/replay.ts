import { createActor, type EventObject, transition } from 'xstate';
import type { AgentStart } from '../../machines/agent-context.ts';
import { type AgentSnapshot, agentMachine } from '../../machines/agent-machine.ts';
import { attemptKey, type TaskId } from '../../machines/task.ts';
import { type TaskSnapshot, taskMachine } from '../../machines/task-machine.ts';
import type { Entry, Store } from '../store/port.ts';

/** One transition, made again from its event alone. */
export interface ReplayedStep {
  readonly seq: number;
  /** RFC 3339 UTC. */
  readonly at: string;
  readonly attempt: number;
  readonly machine: 'task' | 'agent';
  /** The type of the event that caused it. */
  readonly event: string;
  /** The state value that the chart comes to now. */
  readonly state: unknown;
  /** Whether that is the state that the journal recorded. */
  readonly same: boolean;
}

/** What the journal makes of a task when the charts are run over it again (DESIGN 3: fold(journal) is the state). */
export interface Replay {
  readonly steps: readonly ReplayedStep[];
  readonly task: TaskSnapshot;
  /** The agent of the latest attempt, or null. */
  readonly agent: AgentSnapshot | null;
}

interface Recorded {
  readonly machine: string;
  readonly value: unknown;
}

const isTransition = ({ type, cause }: Entry): boolean => type === 'snapshot' && cause !== null;

const initialAgent = (input: AgentStart): AgentSnapshot => createActor(agentMachine, { input }).getSnapshot();

/** The first snapshot of an agent carries what it began with; every later one, an event. */
const nextAgent = (before: AgentSnapshot | null, cause: EventObject & { input?: AgentStart }): AgentSnapshot | null => {
  if (cause.type === 'xstate.init') return cause.input === undefined ? null : initialAgent(cause.input);
  return before === null ? null : (transition(agentMachine, before, cause as never)[0] as AgentSnapshot);
};

/** Runs the charts over a task's transitions, oldest first; nothing is done in the world. */
export const fold = (taskId: TaskId, entries: readonly Entry[]): Replay => {
  const agents = new Map<number, AgentSnapshot>();
  let task: TaskSnapshot = createActor(taskMachine, { input: { taskId } }).getSnapshot();
  let latest: AgentSnapshot | null = null;
  const steps = entries.filter(isTransition).map(({ seq, at, attempt, data, cause }): ReplayedStep => {
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
    return { seq, at: new Date(at).toISOString(), attempt, machine, event: event.type, state, same };
  });
  return { steps, task, agent: latest };
};

const page = 1_000;

/** The journal of a task up to a seq. */
export const entriesUpTo = (store: Pick<Store, 'read'>, taskId: string, seq: number | null): readonly Entry[] => {
  const all: Entry[] = [];
  for (let after = 0; ; ) {
    const entries = store.read({ taskId, after, limit: page });
    all.push(...entries.filter((entry) => seq === null || entry.seq <= seq));
    const last = entries.at(-1);
    if (last === undefined || (seq !== null && last.seq >= seq)) return all;
    after = last.seq;
  }
};

const comparable = (snapshot: { readonly value: unknown; readonly context: unknown }): string =>
  JSON.stringify([snapshot.value, snapshot.context]);

/**
 * How the saved state of a task differs from what its journal makes of it, in one sentence, or null when it does not.
 * Secrets are taken out of both alike.
 */
export const differenceFrom = (store: Pick<Store, 'read' | 'actor'>, taskId: TaskId): string | null => {
  const saved = store.actor(taskId);
  if (saved === null) return null;
  const { steps, task, agent } = fold(taskId, entriesUpTo(store, taskId, null));
  const wrong = steps.find(({ same }) => !same);
  if (wrong !== undefined)
    return `at ${wrong.seq} the ${wrong.machine} comes to ${JSON.stringify(wrong.state)} by ${wrong.event}, which is not what was recorded`;
  if (comparable(JSON.parse(saved.snapshot)) !== comparable(JSON.parse(JSON.stringify(task))))
    return `the saved state of the task is not what its journal makes of it (${JSON.stringify(task.value)})`;
  const savedAgent = store.actor(attemptKey(taskId, task.context.attempt));
  if (agent === null || savedAgent === null || agent.context.attempt !== task.context.attempt) return null;
  return comparable(JSON.parse(savedAgent.snapshot)) === comparable(JSON.parse(JSON.stringify(agent)))
    ? null
    : `the saved state of its agent is not what its journal makes of it (${JSON.stringify(agent.value)})`;
};
