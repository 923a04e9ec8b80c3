import { setTimeout } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { fromPromise } from 'xstate';
import { isServiceError, ServiceError } from '../../../machines/errors.ts';
import { messageOf } from '../../../machines/message-of.ts';
import { plural } from '../../../machines/plural.ts';
import {
  type Asked,
  type Checks,
  type Published,
  type PublishWish,
  type PullRequestContext,
  type PullRequestEvent,
  type PullRequestInput,
  type PullRequestProblem,
  type PullRequestSnapshot,
  pullRequestMachine,
  type Seen,
} from '../../../machines/pull-request/pull-request-machine.ts';
import type { TaskId } from '../../../machines/task.ts';
import {
  type Forge,
  ForgeError,
  type ForgeFault,
  type PullRequestStatus,
} from '../../forge/port.ts';
import type { Journal } from '../../journal/journal.ts';
import type { PullRequestView, TaskView } from '../../journal/task-view.ts';
import type { Store } from '../../store/port.ts';
import type { Workspace } from '../../workspace/port.ts';
import type { PublishSettings } from '../attempts/settings.ts';
import { createHost, type Host, type HostPorts } from '../hosting/host.ts';
import { requireId } from '../queries/task-id.ts';
import { pullRequestId, viewOfPullRequest } from './pull-request-view.ts';

/** A forge, with what a push to it needs. */
export interface ForgePlace {
  readonly forge: Forge;
  /** The address that is pushed to. */
  readonly url: string;
  /** Null: the address needs none of ours. */
  readonly token: string | null;
}

/** Rejects with `PullRequestError` when there is no forge, or no token for it. */
export type FindForge = (signal: AbortSignal) => Promise<ForgePlace>;

export interface PublishRequest {
  readonly taskId: string;
  readonly draft?: boolean | undefined;
  readonly base?: string | undefined;
}

export type TaskPullRequest = { readonly task_id: TaskId; readonly attempt: number } & {
  readonly pull_request: PullRequestView;
};

export interface Publishing {
  /**
   * Pushes the work of the newest attempt of a task, and opens its pull request or brings it up to date.
   * @returns it as it is after that, or after 30 s. @throws task_not_found, event_not_allowed
   */
  publish(request: PublishRequest): Promise<TaskPullRequest>;
  /** @throws task_not_found, event_not_allowed for a task that has none */
  pullRequest(taskId: string): Promise<TaskPullRequest>;
}

export interface PullRequests
  extends Publishing,
    Pick<
      Host<PullRequestSnapshot, PullRequestEvent, PullRequestInput>,
      'restore' | 'stop' | 'failing'
    > {
  /** Publishes complete work by itself where the configuration says so. */
  start(): void;
}

export interface PullRequestPorts extends HostPorts {
  readonly journal: HostPorts['journal'] & Pick<Journal, 'onOwnCommit'>;
  readonly store: Pick<Store, 'actor' | 'openHosted'>;
  readonly workspace: Pick<Workspace, 'push'>;
  readonly status: (taskId: string) => Promise<TaskView>;
  readonly settings: () => PublishSettings;
  readonly place: FindForge;
}

/** A problem that somebody can mend, or the forge itself. Thrown here, and told as a result. */
export class PullRequestError extends Error {
  readonly problem: PullRequestProblem;
  constructor(problem: PullRequestProblem) {
    super(problem.message);
    this.problem = problem;
  }
}

const forPerson = (message: string, fault: ForgeFault = 'refused') =>
  new PullRequestError({ needs: 'person', fault, message, retryAt: null });

/** Says who can mend it. */
const problemIn = (error: unknown): PullRequestProblem => {
  if (error instanceof PullRequestError) return error.problem;
  if (!(error instanceof ForgeError))
    return { needs: 'forge', message: messageOf(error), retryAt: null };
  const { fault, message, retryAt } = error;
  const needs = fault === 'limit' ? 'limit' : fault === 'away' ? 'forge' : 'person';
  return { needs, fault, message, retryAt };
};

const checksOf = (
  { checks }: PullRequestStatus,
  published: Published,
  now: number,
  waitMs: number,
): Checks => {
  const has = (state: 'red' | 'pending' | 'green'): boolean =>
    checks.some((check) => check.state === state);
  if (has('red')) return 'red';
  if (has('pending')) return 'pending';
  if (has('green')) return 'green';
  return now - published.at < waitMs ? 'pending' : 'none';
};

/** The task, beside the attempt that was pushed. */
const taskOf = async (
  status: PullRequestPorts['status'],
  taskId: TaskId,
  { attempt }: Published,
): Promise<Seen['task']> => {
  const task = await status(taskId).catch((error: unknown) => {
    if (isServiceError(error) && error.code === 'task_not_found') return null;
    throw error;
  });
  if (task === null || task.status === 'cancelled') return 'unwanted';
  if (task.attempt === attempt && task.work?.discarded_at !== undefined) return 'unwanted';
  return task.status === 'complete' && task.attempt > attempt ? 'newer' : 'same';
};

/** Failed checks that are kept by name. */
const redAtMost = 100;

/** A closed pull request is looked at so long: a person may open it again. */
const closedForMs = 7 * 24 * 3_600_000;

/**
 * Does something until it gives a result, with pauses that grow, or a problem that a person mends, or
 * that is another one than before: the journal grows only when something changes.
 */
const createUntilNews =
  ({ settings, now }: Pick<PullRequestPorts, 'settings' | 'now'>) =>
  <Output>(
    doOnce: (context: PullRequestContext, signal: AbortSignal) => Promise<Output | null>,
    waitsFirst = ({ problem }: PullRequestContext): boolean => problem !== null,
  ) =>
    fromPromise<Asked<Output>, PullRequestContext>(async ({ input, signal }) => {
      let [pauseMs, longestMs] = settings().pauseMs;
      let last = input.problem;
      for (let waits = waitsFirst(input); ; waits = true) {
        if (waits) {
          const ms = Math.max(pauseMs, (last?.retryAt ?? 0) - now());
          await setTimeout(ms, undefined, { signal, ref: false });
          pauseMs = Math.min(pauseMs * 2, longestMs);
        }
        try {
          const news = await doOnce(input, signal);
          if (news !== null) return { done: news };
          last = null;
        } catch (error) {
          signal.throwIfAborted();
          last = problemIn(error);
          const { needs, message } = last;
          const isNew = needs !== input.problem?.needs || message !== input.problem.message;
          if (isNew || needs === 'person') return { problem: last };
        }
      }
    });

const titleAtMost = 200;
const bodyAtMost = 20_000;

/** The title and text of a pull request: what changed, how it was verified, what it cost. */
const describeWork = (
  { task_id, title, result = '', role, work, usage, attempts = [] }: TaskView,
  attempt: number,
): { readonly title: string; readonly body: string } => {
  const cost = attempts.reduce((sum, { cost_usd = 0 }) => sum + cost_usd, 0);
  const costs = cost > 0 ? cost : (usage.cost_usd ?? 0);
  const tested = work?.tested?.commands ?? [];
  const facts = [
    `Task ${task_id}, attempt ${attempt}${role === undefined ? '' : ` by the ${role}`}`,
    ...(work === undefined
      ? []
      : [`${plural(work.files, 'file')}, +${work.insertions} −${work.deletions}`]),
    ...(tested.length === 0 ? [] : [`Verified: ${tested.map((each) => `\`${each}\``).join(', ')}`]),
    ...(costs > 0 ? [`Cost: $${costs.toFixed(2)}`] : []),
  ];
  const body = [result.trim(), facts.map((fact) => `- ${fact}`).join('\n')];
  return {
    title: title.slice(0, titleAtMost),
    body: body
      .filter((part) => part !== '')
      .join('\n\n')
      .slice(0, bodyAtMost),
  };
};

const createPublish =
  ({ workspace, status, place, now }: PullRequestPorts) =>
  async (
    { taskId, attempt: wanted, draft, base, published }: PullRequestContext,
    signal: AbortSignal,
  ): Promise<Published> => {
    const task = await status(taskId);
    const attempt = task.status === 'complete' ? task.attempt : wanted;
    const { forge, url, token } = await place(signal);
    const branch = `agent/${taskId}/pr`;
    const seen = published?.headSha ?? null;
    const pushed = await workspace.push(taskId, attempt, { url, branch, seen, token }, signal);
    if (pushed === null) throw forPerson(`attempt ${attempt} changed nothing that could be pushed`);
    if (pushed.status === 'refused')
      throw forPerson(pushed.why, pushed.lacksRight ? 'right' : 'refused');
    if (pushed.status === 'moved')
      throw forPerson(
        `${branch} has commits that this server did not push (${pushed.commit.slice(0, 12)}): merge the pull request with them, or delete that branch, then publish again`,
      );
    const onto = base ?? (await forge.defaultBranch(signal));
    const wish = { head: branch, base: onto, draft, ...describeWork(task, attempt) };
    const { number, url: page } = await forge.publish(wish, signal);
    return { number, url: page, headSha: pushed.commit, attempt, at: now() };
  };

const createLook =
  ({ status, settings, place, now }: PullRequestPorts) =>
  async (
    taskId: TaskId,
    published: Published,
    known: PullRequestStatus | null,
    signal: AbortSignal,
  ): Promise<{ readonly seen: Seen; readonly found: PullRequestStatus | null }> => {
    const { forge } = await place(signal);
    const task = await taskOf(status, taskId, published);
    const found = await forge.status(published.number, known, signal);
    if (found === null) {
      const none = { checks: 'none', red: [], review: 'none', mergeable: 'unknown' } as const;
      return { found, seen: { state: 'gone', headSha: published.headSha, ...none, task } };
    }
    const { state, headSha, checks, review, mergeable, mergeCommit } = found;
    return {
      found,
      seen: {
        state,
        headSha,
        review,
        mergeable,
        task,
        checks: checksOf(found, published, now(), settings().checksWaitMs),
        red: checks
          .flatMap((check) => (check.state === 'red' ? [check.name] : []))
          .slice(0, redAtMost),
        ...(mergeCommit === undefined ? {} : { mergeCommit }),
      },
    };
  };

const providePullRequestActors = (
  ports: PullRequestPorts,
  /** The last answers of the forge, for conditional requests. */
  known: Map<TaskId, PullRequestStatus>,
): typeof pullRequestMachine => {
  const { place, now } = ports;
  const untilNews = createUntilNews(ports);
  const look = createLook(ports);
  return pullRequestMachine.provide({
    actors: {
      publish: untilNews(createPublish(ports)),
      watch: untilNews(
        async ({ taskId, published, seen: before }, signal) => {
          if (published === null) throw new Error('it is published before it is looked at');
          const { seen, found } = await look(taskId, published, known.get(taskId) ?? null, signal);
          if (found !== null) known.set(taskId, found);
          if (!isDeepStrictEqual(seen, before)) return seen;
          const isOld = seen.state === 'closed' && now() - published.at > closedForMs;
          return isOld ? { ...seen, state: 'gone' } : null;
        },
        ({ seen, problem }) => seen !== null || problem !== null,
      ),
      abandon: untilNews(async ({ published }, signal) => {
        if (published !== null) await (await place(signal)).forge.close(published.number, signal);
        return true;
      }),
    },
  });
};

/** @throws event_not_allowed for a task without complete work */
const requireWork = ({ task_id, status, attempt, work }: TaskView): TaskId => {
  const taskId = requireId(task_id);
  const refuse = (state: string, allowed: readonly string[]): ServiceError =>
    new ServiceError('event_not_allowed', { task_id: taskId, event: 'publish', state, allowed });
  if (attempt === 0 || status === 'queued') throw refuse(status, ['run']);
  if (status !== 'complete') throw refuse(status, status === 'started' ? ['cancel'] : ['retry']);
  if (work?.discarded_at !== undefined) throw refuse('discarded', ['reopen']);
  if (work?.branch === undefined) throw refuse('complete without work', ['reopen']);
  return taskId;
};

/** @throws PullRequestError */
export const nowhere: FindForge = async () => {
  throw forPerson('this server has no forge: set forge.repository and forge.remote');
};

export const createPullRequests = (ports: PullRequestPorts): PullRequests => {
  const { store, status, settings } = ports;
  const known = new Map<TaskId, PullRequestStatus>();
  const chart = {
    kind: 'pullRequest',
    machine: providePullRequestActors(ports, known),
    idOf: ({ taskId }: PullRequestContext) => pullRequestId(taskId),
    shown: (snapshot: PullRequestSnapshot) => ({
      task: snapshot.context.taskId,
      pull_request: viewOfPullRequest(snapshot.value, snapshot.context),
    }),
    open: () => store.openHosted('pullRequest'),
    ended: async ({ context }: PullRequestSnapshot) => void known.delete(context.taskId),
  } as const;
  const host = createHost<PullRequestSnapshot, PullRequestEvent, PullRequestInput>(ports, chart);
  const isSettled = (snapshot: PullRequestSnapshot): boolean =>
    !snapshot.matches('publishing') || snapshot.context.problem !== null;

  const publish: PullRequests['publish'] = async ({ taskId: given, draft, base }) => {
    const task = await status(given);
    const taskId = requireWork(task);
    const { attempt } = task;
    const wish: PublishWish = { draft: draft ?? settings().draft, base: base ?? null };
    const before = await host.stateOf(pullRequestId(taskId));
    if (before?.status === 'active') {
      const { asked } = before.context;
      await host.send(
        pullRequestId(taskId),
        { type: 'publish', attempt, ...wish, base: base ?? before.context.base },
        (snapshot) => snapshot.context.asked > asked && isSettled(snapshot),
      );
    } else {
      await host.begin({ taskId, attempt, ...wish }, isSettled);
    }
    return find(taskId);
  };
  const find = async (given: string): Promise<TaskPullRequest> => {
    const { task_id, attempt, status: state } = await status(given);
    const taskId = requireId(task_id);
    const found = await host.stateOf(pullRequestId(taskId));
    if (found === null)
      throw new ServiceError('event_not_allowed', {
        task_id: taskId,
        event: 'pull_request',
        allowed: ['publish'],
        state: `${state}, without a pull request`,
      });
    return {
      task_id: taskId,
      attempt,
      pull_request: viewOfPullRequest(found.value, found.context),
    };
  };
  return {
    publish,
    pullRequest: find,
    start: () =>
      ports.journal.onOwnCommit((entries) => {
        for (const { type, taskId } of entries)
          if (type === 'completed' && settings().publish === 'when_complete')
            publish({ taskId }).catch((error: unknown) =>
              ports.log('could not publish complete work', { task: taskId, error }),
            );
      }),
    restore: host.restore,
    failing: host.failing,
    stop: host.stop,
  };
};
