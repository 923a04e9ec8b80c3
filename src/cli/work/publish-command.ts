import { requireId } from '../../actors/engine/queries/task-id.ts';
import type { PullRequestView } from '../../actors/journal/task-view.ts';
import type { Result } from '../client/client.ts';
import type { CommandContext } from '../client/command-context.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { wrapAfter } from '../output/wrap.ts';
import { fetchTasks } from '../tasks/fetch-tasks.ts';

type Published = Result<'publish'>;

/** `#12 open` */
const nameOf = ({ number, state }: PullRequestView): string =>
  number === undefined ? state : `#${number} ${state}`;

const print = (
  { io, json }: CommandContext,
  { task_id, pull_request: pr, ...rest }: Pick<Published, 'task_id' | 'pull_request'>,
): void => {
  if (json) {
    io.json({ task_id, ...rest, pull_request: pr });
    return;
  }
  const line = (start: string, text: string | undefined): void => {
    if (text !== undefined) io.out(wrapAfter(`  ${start.padEnd(11)}`, text, io.width));
  };
  io.out(`${task_id}  ${nameOf(pr)}`);
  line('page', pr.url);
  line('checks', pr.checks);
  line('review', pr.review);
  line('mergeable', pr.mergeable);
  line('waits for', pr.waits_for);
  line('because', pr.reason);
};

const codeOf = ({ fault, waits_for: waits, state }: PullRequestView): number => {
  if (fault === 'right' || fault === 'token') return exitCodes.unauthorized;
  if (state !== 'publishing') return exitCodes.done;
  if (waits === 'person') return exitCodes.conflict;
  return exitCodes.unavailable;
};

export interface PublishArgs {
  readonly task_id: string;
  readonly draft: boolean;
  readonly base: string | undefined;
  readonly fix: boolean;
}

/**
 * Opens the pull request of a task, or brings it up to date. Exit code 8 without the right, 4 when a
 * person has to mend something else, 6 when the forge is away or at its limit: then it goes on by itself.
 */
export const publishWork = async (
  context: CommandContext,
  { task_id, draft, base, fix }: PublishArgs,
): Promise<number> => {
  const client = await context.connection.server();
  const how = {
    ...(draft ? { draft } : {}),
    base,
    ...(fix ? { fix } : {}),
  };
  const published = await client.call('publish', { task_id: requireId(task_id), ...how });
  print(context, published);
  return codeOf(published.pull_request);
};

/** Says how pull requests stand: that of a task, or all of complete tasks that are not over. */
export const showPullRequests = async (
  context: CommandContext,
  { task_id }: { readonly task_id: string | undefined },
): Promise<number> => {
  const { io, json, connection } = context;
  const client = await connection.server();
  if (task_id !== undefined) {
    print(context, await client.call('pull_request', { task_id: requireId(task_id) }));
    return exitCodes.done;
  }
  const { tasks } = await fetchTasks(client, io, {}, null);
  const found = tasks.flatMap(({ task_id: id, pull_request: pr }) =>
    pr === undefined || pr.state === 'merged' || pr.state === 'abandoned'
      ? []
      : [{ task_id: id, pull_request: pr }],
  );
  for (const each of found) print(context, each);
  if (found.length === 0 && !json) io.out('no pull request is open');
  return exitCodes.done;
};
