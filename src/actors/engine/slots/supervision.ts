import { createActor, type SnapshotFrom, waitFor } from 'xstate';
import type { agentMachine } from '../../../machines/agent/agent-machine.ts';
import {
  atWork,
  pauseOf,
  type SupervisorEvent,
  type SupervisorFact,
  type SupervisorInput,
} from '../../../machines/supervisor/supervisor-context.ts';
import { supervisorMachine } from '../../../machines/supervisor/supervisor-machine.ts';
import { endsWithChildren } from '../../journal/durable-actor.ts';
import type { SlotUse } from '../queries/explain.ts';
import type { ActorRoot } from './actor-system.ts';

type SupervisorSnapshot = SnapshotFrom<typeof supervisorMachine>;
type FactOf<Type> = Extract<SupervisorFact, { type: Type }>;

/** Talks to the supervisor actor, whichever is there. */
export interface SupervisorEvents {
  send(event: SupervisorEvent): void;
  on<Type extends SupervisorFact['type']>(type: Type, listener: (fact: FactOf<Type>) => void): void;
  /** Calls the listener after each transition. */
  onChange(listener: () => void): void;
  snapshot(): SupervisorSnapshot;
}

/** Keeps a supervisor actor: a failed one is replaced. */
export interface Supervision extends SupervisorEvents {
  /** `state` is a state of its chart. */
  check(): { readonly ok: boolean; readonly detail: string; readonly state: string };
  start(work: SupervisedWork): Promise<void>;
  drain(): void;
  whenIdle(ms: number): Promise<void>;
  stop(): void;
}

interface SupervisedWork {
  readonly agent: typeof agentMachine;
  /** Stops every task actor. @throws when gathered changes cannot be committed */
  readonly dropTasks: () => Promise<void>;
  /** Retakes the committed slots, then restores the tasks. */
  readonly restore: () => Promise<void>;
}

interface SupervisionPorts {
  readonly root: ActorRoot;
  readonly input: () => SupervisorInput;
  readonly now: () => number;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

const firstRestartPauseMs = 1_000;
const longestRestartPauseMs = 60_000;
/** After this time without a failure, the pauses start anew. */
const healthyMs = 10 * 60_000;

/** The pause before each restart (ms): 0 at first, then longer with each failure. */
const createRestartPauses = (now: () => number): (() => number) => {
  let failures = 0;
  let lastFailureAt = 0;
  return () => {
    const at = now();
    failures = at - lastFailureAt > healthyMs ? 1 : failures + 1;
    lastFailureAt = at;
    return failures === 1
      ? 0
      : Math.min(firstRestartPauseMs * 2 ** (failures - 2), longestRestartPauseMs);
  };
};

const isIdle = ({ context }: SupervisorSnapshot): boolean => atWork(context).length === 0;

/** Listeners outlive the supervisor that they listen to. */
const createFacts = () => {
  const listeners: ((fact: SupervisorFact) => void)[] = [];
  const on: SupervisorEvents['on'] = <Type extends SupervisorFact['type']>(
    type: Type,
    listener: (fact: FactOf<Type>) => void,
  ): void => {
    listeners.push((fact) => {
      if (fact.type === type) listener(fact as FactOf<Type>);
    });
  };
  const tell = (fact: SupervisorFact): void => {
    for (const listener of listeners) listener(fact);
  };
  return { on, tell };
};

/** A supervisor that is not started. Without work it only says what is there before the start. */
const createSupervisor = ({ root, input }: SupervisionPorts, work: SupervisedWork | null) => {
  const logic =
    work === null
      ? supervisorMachine
      : supervisorMachine.provide({ actors: { agent: work.agent } });
  return createActor(endsWithChildren(logic), {
    id: 'supervisor',
    parent: root.parent,
    input: input(),
  });
};

/** Replaces a failed supervisor after a pause, one replacement at a time. */
const createRecovery = ({ now, log }: SupervisionPorts) => {
  const nextPauseMs = createRestartPauses(now);
  let problem: string | null = null;
  let isStopped = false;
  let timer: NodeJS.Timeout | undefined;
  let recovering: Promise<void> = Promise.resolve();

  const begin = async (replace: () => Promise<void>): Promise<void> => {
    if (isStopped) return;
    try {
      await replace();
    } catch (error) {
      later('the tasks could not be restored', error, replace);
    }
  };
  const later = (what: string, error: unknown, replace: () => Promise<void>): void => {
    if (isStopped) return;
    const pauseMs = nextPauseMs();
    problem = `${what}; the server restores its tasks in ${pauseMs / 1_000} s; the log has the reason`;
    log(`${what}; the server restores its tasks`, { error, pause_ms: pauseMs });
    clearTimeout(timer);
    timer = setTimeout(() => {
      recovering = recovering.then(() => begin(replace));
    }, pauseMs).unref();
  };
  return {
    later,
    problem: () => problem,
    succeeded: () => {
      problem = null;
    },
    stop: () => {
      isStopped = true;
      clearTimeout(timer);
    },
  };
};

export const createSupervision = (ports: SupervisionPorts): Supervision => {
  const { root } = ports;
  const facts = createFacts();
  const changeListeners: (() => void)[] = [];
  let isDraining = false;

  const recovery = createRecovery(ports);
  let actor = createSupervisor(ports, null);

  const begin = (work: SupervisedWork): void => {
    actor = createSupervisor(ports, work);
    actor.on('*', facts.tell);
    actor.subscribe({
      next: () => {
        for (const listener of changeListeners) listener();
      },
      error: (error) => recovery.later('the supervisor broke', error, () => replace(work)),
    });
    actor.start();
  };

  /** As in a new process: only committed state counts. */
  const replace = async (work: SupervisedWork): Promise<void> => {
    root.stop(actor);
    begin(work);
    await work.dropTasks();
    await restoreTasks(work);
  };

  const restoreTasks = async ({ restore }: SupervisedWork): Promise<void> => {
    const own = actor;
    if (isDraining) send({ type: 'drain' });
    await restore();
    send({ type: 'queue.opened' });
    if (own === actor && own.getSnapshot().status === 'active') recovery.succeeded();
  };

  /** A failed supervisor gets no events: its successor starts from committed state. */
  const send = (event: SupervisorEvent): void => {
    if (actor.getSnapshot().status === 'active') actor.send(event);
  };

  return {
    send,
    on: facts.on,
    onChange: (listener) => void changeListeners.push(listener),
    snapshot: () => actor.getSnapshot(),
    check: () => ({
      ok: recovery.problem() === null,
      detail: recovery.problem() ?? 'the queue is open',
      state: String(actor.getSnapshot().value),
    }),
    start: async (work) => {
      begin(work);
      await restoreTasks(work);
    },
    drain: () => {
      isDraining = true;
      send({ type: 'drain' });
    },
    whenIdle: async (ms) => void (await waitFor(actor, isIdle, { timeout: ms }).catch(() => {})),
    stop: () => {
      recovery.stop();
      root.stop(actor);
    },
  };
};

export const endQueuePauses = (
  supervisor: Pick<SupervisorEvents, 'on' | 'send'>,
  log: (message: string, facts: Readonly<Record<string, unknown>>) => void,
): { stop(): void } => {
  let timer: NodeJS.Timeout | undefined;
  supervisor.on('queue.paused', ({ ms }) => {
    log('queue paused: attempts in a row failed with the same provider error', { pause_ms: ms });
    clearTimeout(timer);
    timer = setTimeout(() => supervisor.send({ type: 'pause.over' }), ms).unref();
  });
  return { stop: () => clearTimeout(timer) };
};

export const slotUseOf = (snapshot: SupervisorSnapshot): SlotUse => {
  const { waiting, cap, queueLimit, streak } = snapshot.context;
  const isPaused = (snapshot.matches('paused') || snapshot.matches('probing')) && streak !== null;
  const paused = isPaused
    ? `the queue is paused: attempts in a row failed with the same provider error (${streak.message}); it is tried again every ${pauseOf(snapshot.context) / 1_000} s`
    : null;
  return {
    running: atWork(snapshot.context).length,
    waiting: waiting.length,
    cap,
    queueLimit,
    paused,
  };
};
