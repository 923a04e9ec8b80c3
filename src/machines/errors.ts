import type { ProjectProblem, Role, TaskId } from './task.ts';
import { roles } from './task.ts';

/** A ladder: each has those before it. */
export const rights = ['read', 'run', 'review', 'admin'] as const;
export type Right = (typeof rights)[number];

export interface ErrorFacts {
  /** `others`: do not exist either. */
  task_not_found: { task_id: string; others?: readonly string[] };
  dependencies_unmet: { task_id: TaskId; unmet: readonly TaskId[] };
  dependency_cycle: { cycle: readonly TaskId[] };
  /** `parked_until`: of an attempt that waits for the end of a limit of the provider. */
  already_running: { task_id: TaskId; attempt: number; parked_until?: string };
  event_not_allowed: { task_id: TaskId; event: string; state: string; allowed: readonly string[] };
  role_unknown: { role: string };
  queue_full: { limit: number; retry_after_seconds: number };
  /** `problem`: why the requested assistant cannot be used. `remedy`: every way to get a model. */
  credential_missing: { variable: string; problem?: string; remedy?: string };
  /** `because`: the tracker works, but the task's earlier work still uses it. */
  tracker_unavailable: { detail: string; remedy: string; because?: 'earlier_work' };
  tracker_conflict: { task_id: TaskId; holder: string };
  stale_attempt: { task_id: TaskId; attempt: number; live_attempt: number };
  project_refused: ProjectProblem;
  /** `ran`: the task whose run it asked for, so that somebody else merges it (`policy.merge`). */
  forbidden: { needs: Right; name: string; rights?: string; ran?: TaskId };
  invalid_params: { fields: readonly { path: string; problem: string }[] };
  /** `detail` is shown to callers: never the message of a foreign error. */
  internal: { detail: string | null; remedy?: string };
}
export type ErrorCode = keyof ErrorFacts;

const namesAtMost = 10;

const messages: { readonly [Code in ErrorCode]: (facts: ErrorFacts[Code]) => string } = {
  task_not_found: ({ task_id, others = [] }) => {
    const more = others.length > namesAtMost ? `, and ${others.length - namesAtMost} more` : '';
    return others.length === 0
      ? `task ${task_id} does not exist`
      : `task ${task_id} does not exist, nor ${others.slice(0, namesAtMost).join(', ')}${more}`;
  },
  dependencies_unmet: ({ unmet }) => `task has unmet dependencies [${unmet.join(', ')}]`,
  dependency_cycle: ({ cycle }) => `the dependency would close a cycle: ${cycle.join(' -> ')}`,
  already_running: ({ task_id, attempt, parked_until }) =>
    `task ${task_id} is ${parked_until === undefined ? 'already running' : 'parked'} as attempt ${attempt}`,
  event_not_allowed: ({ task_id, event, state, allowed }) =>
    `task ${task_id} is ${state}: ${event} is not allowed now; allowed: ${allowed.join(', ') || 'nothing'}`,
  role_unknown: ({ role }) =>
    `unknown role ${JSON.stringify(role)}; the roles are ${roles.join(', ')}`,
  queue_full: ({ limit }) =>
    `the queue is full (${limit} tasks); try again when some have finished`,
  credential_missing: ({ variable, problem, remedy = 'set it' }) =>
    `${variable} is not set${problem === undefined ? '' : ` and ${problem}`}: ${remedy}`,
  tracker_unavailable: ({ detail, remedy, because }) =>
    because === undefined
      ? `the task tracker cannot be used: ${detail}; ${remedy}`
      : `${detail}; ${remedy}`,
  tracker_conflict: ({ task_id, holder }) =>
    holder.startsWith('its ')
      ? `task ${task_id} cannot run in ${holder} in the tracker; change it there`
      : `task ${task_id} is held by ${holder} in the tracker; release it with: agent reopen ${task_id}`,
  stale_attempt: ({ task_id, attempt, live_attempt }) =>
    `attempt ${attempt} of task ${task_id} is over; the live one is ${live_attempt}`,
  forbidden: ({ needs, name, rights, ran }) =>
    ran === undefined
      ? `the token ${name} has the right ${rights}, and this needs ${needs}; ask who runs the server for a token with it`
      : `${name} ran ${ran}, and policy.merge is not_author: somebody else with the right ${needs} merges it`,
  project_refused: ({ path, problem, remedy }) => `${path} ${problem}; ${remedy}`,
  invalid_params: ({ fields }) =>
    fields.map(({ path, problem }) => `${path}: ${problem}`).join('; '),
  internal: ({ detail, remedy }) =>
    remedy !== undefined
      ? `${detail}; ${remedy}`
      : `internal error${detail === null ? '' : `: ${detail}`}; the server log has the details`,
};

/** False for a code of a later version. */
export const isErrorCode = (text: string): text is ErrorCode => Object.hasOwn(messages, text);

/** An expected error as a value, in machines and across processes. */
export type Refusal = {
  [Code in ErrorCode]: { readonly code: Code; readonly facts: ErrorFacts[Code] };
}[ErrorCode];

export const refusal = <Code extends ErrorCode>(code: Code, facts: ErrorFacts[Code]): Refusal =>
  ({ code, facts }) as Refusal;

/** One sentence that says what is wrong. The command line adds the commands that help. */
export const describeRefusal = (given: Refusal): string =>
  (messages[given.code] as (facts: unknown) => string)(given.facts);

/** Thrown only where a caller waits for an answer. */
export class ServiceError<Code extends ErrorCode = ErrorCode> extends Error {
  override readonly name = 'ServiceError';
  readonly code: Code;
  readonly facts: ErrorFacts[Code];

  constructor(code: Code, facts: ErrorFacts[Code], options?: { cause?: unknown }) {
    super(messages[code](facts), options);
    this.code = code;
    this.facts = facts;
  }

  static from(given: Refusal): ServiceError {
    return new ServiceError(given.code, given.facts);
  }
}

export const isServiceError = (error: unknown): error is ServiceError =>
  error instanceof ServiceError;

/** @throws role_unknown */
export const requireRole = (text: string): Role => {
  const role = roles.find((known) => known === text);
  if (role === undefined) throw new ServiceError('role_unknown', { role: text });
  return role;
};
