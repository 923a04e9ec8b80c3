import { type AnyActorRef, initialTransition } from 'xstate';
import type { agentMachine } from '../../../machines/agent/agent-machine.ts';
import type { AttemptKey, TaskId } from '../../../machines/task.ts';
import { durable } from '../../journal/durable-actor.ts';
import type { Journal } from '../../journal/journal.ts';
import { createSlots, type Slots } from '../slots/slots.ts';
import type { SupervisorEvents } from '../slots/supervision.ts';
import { patiently } from '../tasks/patient-reads.ts';
import type { TaskHost } from '../tasks/task-host.ts';
import { type AgentActors, createAgentActors } from './agent-actors.ts';
import type { Budgets } from './budgets.ts';
import {
  type AgentRuns,
  createAgentRuns,
  createRunningWork,
  type RunningWork,
} from './running-work.ts';

import type { BackendSelector } from './select-assistant.ts';
import type { Settings } from './settings.ts';
import type { SystemPorts } from './system-ports.ts';

interface AttemptsPorts {
  readonly ports: SystemPorts;
  readonly settings: () => Settings;
  readonly journal: Journal;
  readonly supervisor: SupervisorEvents;
  readonly host: TaskHost;
  readonly backends: BackendSelector;
  readonly budgets: Budgets;
  readonly agentActor: (key: string) => AnyActorRef | undefined;
}

interface Attempts {
  readonly slots: Slots;
  readonly work: RunningWork;
  readonly agents: AgentActors;
  /** The agent machine whose transitions are committed. */
  readonly logic: typeof agentMachine;
  readonly runs: AgentRuns;
}

export const createAttempts = (given: AttemptsPorts): Attempts => {
  const { ports, settings, journal, supervisor, host, backends, budgets, agentActor } = given;
  const { tracker, now } = ports;
  const { views, recorder } = host;
  // Whoever stops or fails has left its state to its successor.
  const holdsSlot = (taskId: TaskId): boolean =>
    host.live.get(taskId)?.actor.getSnapshot().hasTag('live') ?? true;
  const slots = createSlots(supervisor, holdsSlot, now);
  const work = createRunningWork();
  const agents = createAgentActors({
    ports,
    settings,
    projectRoot: settings().projectRoot,
    backends,
    budgets,
    journal,
    findTask: async (taskId) => views.knownTask(taskId) ?? patiently(() => tracker.find(taskId)),
    slots,
    work,
    tellAgent: (key, event) => agentActor(key)?.send(event),
  });
  const { machine } = agents;
  supervisor.on('agent.gone', ({ key }) => agents.forget(key as AttemptKey));
  return {
    slots,
    work,
    agents,
    logic: durable(machine, {
      now,
      commit: (transition) =>
        recorder.agent(transition, machine.getPersistedSnapshot(transition.next)),
      ...journal.deadline,
    }),
    runs: createAgentRuns(supervisor, work, (input) => {
      const [first] = initialTransition(machine, input);
      const cause = { type: 'xstate.init', input, at: now() };
      const transition = { next: first, cause, requestId: null };
      return recorder.agent(transition, machine.getPersistedSnapshot(first));
    }),
  };
};
