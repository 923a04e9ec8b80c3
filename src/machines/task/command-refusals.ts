import type { Question, Response, Tell } from '../agent/agent-context.ts';
import type { AgentSnapshot } from '../agent/agent-machine.ts';
import { hasRoomFor } from '../agent/agent-messages.ts';
import { type Refusal, refusal } from '../errors.ts';
import { stateInWords } from '../phase.ts';
import type { Finding, Role, RunOptions, Stamped } from '../task.ts';
import { refusesRun, runGuards, runRefusals } from './run-guards.ts';
import type { TaskCommand } from './task-context.ts';
import type { TaskSnapshot } from './task-machine.ts';
import { hasParkedAttempt } from './task-selectors.ts';

const sampleCommands = {
  run: { type: 'run', role: 'engineer', options: {}, maxRetries: 0 },
  retry: { type: 'retry', role: null, options: null, maxRetries: 0, reason: null },
  review: { type: 'review', verdict: 'comment', attempt: null, comments: [], maxRetries: 0 },
  close: { type: 'close', reason: null },
  reopen: { type: 'reopen', reason: null },
  cancel: { type: 'cancel', reason: null },
} as const satisfies { [Type in TaskCommand['type']]: Extract<TaskCommand, { type: Type }> };

/**
 * The commands that the chart accepts now, without a close that changes nothing; and `respond` while
 * its agent has a question.
 */
export const allowedCommands = (snapshot: TaskSnapshot, isAwaited: boolean): readonly string[] => [
  ...Object.values(sampleCommands)
    .filter((command) => snapshot.can({ ...command, at: 0 }))
    .filter(({ type }) => type !== 'close' || !snapshot.hasTag('complete'))
    .map(({ type }) => type),
  ...(isAwaited ? ['respond'] : []),
];

/** Null when the chart accepts the command. */
export const refuses = (
  snapshot: TaskSnapshot,
  agent: AgentSnapshot | null,
  command: Stamped<TaskCommand>,
): Refusal | null => {
  if (snapshot.can(command)) return null;
  const { taskId, attempt, parked } = snapshot.context;
  if (command.type === 'run' && snapshot.hasTag('pending')) {
    const hasBegun = snapshot.hasTag('live') || hasParkedAttempt(snapshot.context);
    const number = hasBegun ? attempt : attempt + 1;
    const until =
      snapshot.hasTag('parked') && parked !== undefined
        ? { parked_until: new Date(parked.until).toISOString() }
        : {};
    return refusal('already_running', { task_id: taskId, attempt: number, ...until });
  }
  return refusal('event_not_allowed', {
    task_id: taskId,
    event: command.type,
    state: stateInWords(snapshot, agent),
    allowed: allowedCommands(snapshot, agent?.hasTag('awaiting') === true),
  });
};

type Run = { readonly role: Role; readonly options: RunOptions };

/** The run that a command would start; null when it starts none. */
const runOf = ({ context }: TaskSnapshot, command: TaskCommand): Run | null => {
  if (command.type === 'retry') {
    const role = command.role ?? context.role;
    return role === null ? null : { role, options: command.options ?? context.options };
  }
  if (command.type !== 'review' || command.verdict !== 'request_changes') return null;
  return context.role === null ? null : { role: context.role, options: context.options };
};

/**
 * The run to look up before a task that is over gets this command: one that is refused must leave
 * the task as it is. Null when its chart refuses it, or nothing can.
 */
export const runToLookUp = (task: TaskSnapshot, command: TaskCommand): Run | null => {
  if (!task.hasTag('settled') || !task.can({ ...command, at: 0 })) return null;
  const { role, options } = task.context;
  return command.type === 'close' && !task.hasTag('complete')
    ? { role: role ?? 'engineer', options }
    : runOf(task, command);
};

/** Null when what was found lets a task that is over take the command. */
export const refusesOver = (
  task: TaskSnapshot,
  command: TaskCommand,
  finding: Finding,
): Refusal | null => {
  // A complete task is closed, which nobody holds once it is open again.
  const holder = task.hasTag('complete') ? null : finding.holder;
  const context = { ...task.context, ...runOf(task, command), finding: { ...finding, holder } };
  if (command.type !== 'close') return refusesRun({ context });
  return runGuards.dependenciesComplete({ context })
    ? null
    : runRefusals.dependenciesComplete({ context });
};

/** The field of a response that is wrong, in the machine's own name. */
export interface ResponseProblem {
  readonly field: keyof Omit<Response, 'type'>;
  readonly problem: string;
}

const responseProblem = ({ inputId, kind }: Question, response: Response): ResponseProblem => {
  if (response.inputId !== inputId)
    return { field: 'inputId', problem: `the attempt waits for ${inputId}` };
  return kind === 'approval'
    ? { field: 'decision', problem: 'is needed: allow or deny' }
    : { field: 'text', problem: 'is needed: the answer in words' };
};

/** Null when the answer is accepted. `agent`: of the live attempt. */
export const refusesResponse = (
  task: TaskSnapshot,
  agent: AgentSnapshot | null,
  attempt: number,
  response: Stamped<Response>,
): Refusal | ResponseProblem | null => {
  const { taskId } = task.context;
  if (!task.hasTag('live') || agent === null || agent.context.attempt !== task.context.attempt)
    return refusal('event_not_allowed', {
      task_id: taskId,
      event: 'respond',
      state: stateInWords(task, agent),
      allowed: allowedCommands(task, false),
    });
  if (attempt !== agent.context.attempt)
    return refusal('stale_attempt', {
      task_id: taskId,
      attempt,
      live_attempt: agent.context.attempt,
    });
  if (agent.can(response)) return null;
  const { question } = agent.context;
  return question === null || !agent.hasTag('awaiting')
    ? refusal('event_not_allowed', {
        task_id: taskId,
        event: 'respond',
        state: stateInWords(task, agent),
        allowed: allowedCommands(task, false),
      })
    : responseProblem(question, response);
};

const tooMuchUnread: ResponseProblem = {
  field: 'text',
  problem: 'the agent has not read what it was told before; wait for its next turn',
};

const tellNotAllowed = (task: TaskSnapshot, agent: AgentSnapshot | null): Refusal =>
  refusal('event_not_allowed', {
    task_id: task.context.taskId,
    event: 'tell',
    state: stateInWords(task, agent),
    allowed: allowedCommands(task, false),
  });

/** Null when the task keeps what a person says for its next agent. */
export const refusesToKeep = (
  task: TaskSnapshot,
  message: Stamped<Tell>,
): Refusal | ResponseProblem | null => {
  if (task.can(message)) return null;
  const { kept } = task.context;
  return task.hasTag('pending') && !hasRoomFor({ unread: kept?.texts }, message)
    ? tooMuchUnread
    : tellNotAllowed(task, null);
};

/** Null when the agent takes what a person says. `agent`: of the live attempt. */
export const refusesTell = (
  task: TaskSnapshot,
  agent: AgentSnapshot | null,
  message: Stamped<Tell>,
): Refusal | ResponseProblem | null => {
  const isAtWork = task.hasTag('live') && agent?.status === 'active';
  if (!isAtWork || agent.context.attempt !== task.context.attempt)
    return tellNotAllowed(task, agent);
  return agent.can(message) ? null : tooMuchUnread;
};
