import { ServiceError } from '../../../machines/errors.ts';
import type {
  Published,
  PublishWish,
  PullRequestContext,
  PullRequestInput,
} from '../../../machines/pull-request/pull-request-context.ts';
import {
  type PullRequestEvent,
  type PullRequestSnapshot,
  pullRequestMachine,
} from '../../../machines/pull-request/pull-request-machine.ts';
import type { TaskId } from '../../../machines/task.ts';
import { type Forge, ForgeError } from '../../forge/port.ts';
import type { Journal } from '../../journal/journal.ts';
import type { PullRequestView, TaskView } from '../../journal/task-view.ts';
import type { Store } from '../../store/port.ts';
import type { Workspace } from '../../workspace/port.ts';
import type { PublishSettings } from '../attempts/settings.ts';
import { createHost, type Host, type HostPorts } from '../hosting/host.ts';
import type { TaskUpdates } from '../merging/update-task.ts';
import { requireId } from '../queries/task-id.ts';
import type { TaskReviews } from '../service/review-task.ts';
import { type DescribePorts, describeWork } from './describe-work.ts';
import { createMend, createReply, createRerun } from './feedback.ts';
import type { FindForge } from './forge-place.ts';
import { branchOf, createMerge, createTakeIn, createUpdateToBase } from './landing.ts';
import { createWatch, type KnownPullRequests, type StackedOn } from './look.ts';
import { pullRequestId, viewOfPullRequest } from './pull-request-view.ts';
import { createPulse, type Pulse } from './pulse.ts';
import { createUntilNews, forPerson, PullRequestError } from './until-news.ts';
import { publishWished } from './wished-work.ts';

export interface PublishRequest {
  readonly taskId: string;
  readonly draft?: boolean | undefined;
  readonly base?: string | undefined;
  /** Another attempt gets what checks and comments say, whatever the rules are. */
  readonly fix?: boolean | undefined;
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
  /** Something moved in a repository: the forge is asked soon, if it is ours. */
  wake(repository: string): Promise<void>;
}

export interface PullRequestPorts extends HostPorts {
  readonly journal: HostPorts['journal'] & Pick<Journal, 'onOwnCommit'>;
  readonly store: DescribePorts['store'] & Pick<Store, 'openHosted' | 'read' | 'lastSeq'>;
  readonly workspace: Pick<Workspace, 'push' | 'fetch' | 'takeIn' | 'noteLanded' | 'readProject'>;
  readonly status: (taskId: string) => Promise<TaskView>;
  readonly review: TaskReviews['review'];
  readonly update: TaskUpdates['update'];
  readonly settings: () => PublishSettings;
  readonly place: FindForge;
}

/** One that is gone is found when it is published. */
const withdraw = (forge: Forge, number: number, signal: AbortSignal): Promise<void> =>
  forge.withdraw(number, signal).catch((error: unknown) => {
    if (!(error instanceof ForgeError) || error.fault !== 'gone') throw error;
  });

/** Null: a person has to mend it. */
const orNone = <Result>(work: Promise<Result>): Promise<Result | null> =>
  work.catch((error: unknown) => {
    if (error instanceof PullRequestError) return null;
    throw error;
  });

const createPublish = (ports: PullRequestPorts, stackedOn: StackedOn) => {
  const { workspace, status, place, now } = ports;
  const takeIn = createTakeIn({ place, workspace });
  return async (context: PullRequestContext, signal: AbortSignal): Promise<Published> => {
    const { taskId, attempt: wanted, draft, base, published } = context;
    const task = await status(taskId);
    const attempt = task.status === 'complete' ? task.attempt : wanted;
    const { forge, url, token, repository } = await place(signal);
    const branch = branchOf(context);
    let seen = published?.headSha ?? null;
    const push = async () => {
      // The forge would merge a head that nobody tested.
      if (published !== null && task.work?.commit !== published.headSha)
        await withdraw(forge, published.number, signal);
      return workspace.push(taskId, attempt, { url, branch, seen, token }, signal);
    };
    let pushed = await push();
    // A server that was killed may have pushed this work before, and somebody else on top of it.
    const last = published?.headSha ?? task.work?.commit;
    if (pushed?.status === 'moved' && last !== undefined) {
      const taken = takeIn(context, { attempt, headSha: last }, signal);
      if ((await (published === null ? orNone(taken) : taken)) !== null) {
        seen = pushed.commit;
        pushed = await push();
      }
    }
    if (pushed === null) throw forPerson(`attempt ${attempt} changed nothing that could be pushed`);
    if (pushed.status === 'refused')
      throw forPerson(pushed.why, pushed.lacksRight ? 'right' : 'refused');
    if (pushed.status === 'moved')
      throw forPerson(
        `${branch} has commits that this server did not push (${pushed.commit.slice(0, 12)}): merge the pull request with them, or delete that branch, then publish again`,
      );
    const onto = base ?? (await stackedOn(task)) ?? (await forge.defaultBranch(signal));
    const described = await describeWork(ports, task, attempt, repository);
    const wish = { head: branch, base: onto, draft, ...described };
    const { number, url: page } = await forge.publish(wish, signal);
    const { commit: headSha, tree } = pushed;
    return { number, url: page, headSha, tree, attempt, at: now() };
  };
};

const providePullRequestActors = (
  ports: PullRequestPorts,
  known: KnownPullRequests,
  pulse: Pulse,
  stackedOn: StackedOn,
): typeof pullRequestMachine => {
  const { place, settings } = ports;
  const untilNews = createUntilNews(ports);
  const takeIn = createTakeIn(ports);
  const landing = { ...ports, method: () => settings().method };
  const feedback = { ...ports, authors: () => settings().authors };
  return pullRequestMachine.provide({
    actors: {
      publish: untilNews(createPublish(ports, stackedOn)),
      reply: untilNews(createReply(feedback)),
      watch: createWatch({ ...ports, stackedOn }, pulse, known),
      takeIn: untilNews(async (context, signal) => {
        const { published } = context;
        if (published === null) throw new Error('it is published before it is looked at');
        const taken = await takeIn(context, published, signal);
        // Its checks begin anew.
        return { ...published, ...taken, at: ports.now() };
      }),
      rerun: untilNews(createRerun(ports)),
      mend: untilNews(createMend(feedback)),
      update: untilNews(createUpdateToBase(landing)),
      merge: untilNews(createMerge(landing)),
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

const wakeMs = 5_000;

/** Entries after which a pull request may be unwanted, or have newer work. */
const endsWish: ReadonlySet<string> = new Set([
  'completed',
  'failed',
  'cancelled',
  'status_update',
  'log',
]);

export const createPullRequests = (ports: PullRequestPorts): PullRequests => {
  const { store, status, settings } = ports;
  const known: KnownPullRequests = new Map();
  const pulse = createPulse({
    forge: async (signal) => (await ports.place(signal)).forge,
    pauseMs: () => settings().pauseMs,
    now: ports.now,
  });
  const stackedOn: StackedOn = async ({ dependencies }) => {
    const open: string[] = [];
    for (const id of dependencies) {
      const found = await host.stateOf(pullRequestId(id as TaskId));
      if (found?.matches('open') || found?.matches('merging')) open.push(branchOf(found.context));
    }
    return open.length === 1 ? (open[0] ?? null) : null;
  };
  const chart = {
    kind: 'pullRequest',
    machine: providePullRequestActors(ports, known, pulse, stackedOn),
    idOf: ({ taskId }: PullRequestContext) => pullRequestId(taskId),
    shown: (snapshot: PullRequestSnapshot) => ({
      task: snapshot.context.taskId,
      pull_request: viewOfPullRequest(snapshot.value, snapshot.context),
    }),
    open: () => store.openHosted('pullRequest'),
    // What is stacked on it may go to another base now.
    published: ({ context }: PullRequestSnapshot) => {
      for (const [id, { after }] of known) if (after.includes(context.taskId)) pulse.nudge(id);
    },
    ended: async ({ context }: PullRequestSnapshot) => void known.delete(context.taskId),
  } as const;
  const host = createHost<PullRequestSnapshot, PullRequestEvent, PullRequestInput>(ports, chart);
  const isSettled = (snapshot: PullRequestSnapshot): boolean =>
    !snapshot.matches('publishing') || snapshot.context.problem !== null;

  const publish: PullRequests['publish'] = async ({ taskId: given, draft, base, fix }) => {
    const task = await status(given);
    const taskId = requireWork(task);
    if (fix === true) return mend(taskId);
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
  const isMendable = ({ value, context: { seen } }: PullRequestSnapshot): boolean =>
    typeof value === 'object' &&
    'open' in value &&
    seen?.task === 'same' &&
    (seen.checks === 'red' || seen.said.length > 0);
  /** @throws event_not_allowed when checks and comments ask for nothing */
  const mend = async (task_id: TaskId): Promise<TaskPullRequest> => {
    const found = await host.stateOf(pullRequestId(task_id));
    if (found === null || !isMendable(found)) {
      const state = 'without a failed check or a comment to answer';
      const facts = { task_id, event: 'publish --fix', state, allowed: ['reopen'] };
      throw new ServiceError('event_not_allowed', facts);
    }
    await host.send(pullRequestId(task_id), { type: 'fix' }, ({ context }) => !context.fix);
    return find(task_id);
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
    pullRequest: (taskId) => {
      // Somebody wants to know: it is not looked at in minutes only.
      pulse.hurry();
      return find(taskId);
    },
    start: () => {
      ports.journal.onOwnCommit((entries) => {
        for (const { type, taskId } of entries)
          if (endsWish.has(type) && known.has(taskId as TaskId)) pulse.nudge(taskId as TaskId);
      });
      publishWished({
        ...ports,
        isPublished: async ({ taskId, attempt }) =>
          ((await host.stateOf(pullRequestId(requireId(taskId))))?.context.attempt ?? 0) >= attempt,
        publish: ({ taskId }) => publish({ taskId }),
      });
    },
    wake: async (repository) => {
      const found = await ports.place(AbortSignal.timeout(wakeMs)).catch(() => null);
      if (found?.repository.toLowerCase() === repository.toLowerCase()) pulse.wake();
    },
    restore: host.restore,
    failing: host.failing,
    stop: host.stop,
  };
};
