import { z } from 'zod';
import { createComments } from './comments.ts';
import { createActions } from './gitea-actions.ts';
import { createDiscussion } from './gitea-comments.ts';
import { createIssues } from './gitea-issues.ts';
import { createPeople } from './gitea-people.ts';
import { createStatus, isDraft, type Pull, pullSchema, toPullRequest } from './gitea-status.ts';
import { createClient, type ForgeOptions, ForgeRefusal } from './http/client.ts';
import { createLists } from './http/lists.ts';
import { requireWritable } from './permissions.ts';
import {
  type Forge,
  ForgeError,
  type HowToMerge,
  type PullRequest,
  type WantedPullRequest,
} from './port.ts';

/** Follows that the token may not push. */
const lacksRight =
  '; give it write:repository and write:issue, and its account the right to write, or give another token';

const repositorySchema = z.object({
  default_branch: z.string(),
  archived: z.boolean().optional(),
  permissions: z.object({ push: z.boolean() }).nullish(),
});
const anything = z.unknown();

const isFault = (error: unknown, ...statuses: readonly number[]): error is ForgeRefusal =>
  error instanceof ForgeRefusal && statuses.includes(error.answer.status);

/** A draft is one whose title says so. */
const titleOf = (title: string, draft: boolean): string => (draft ? `WIP: ${title}` : title);

/**
 * Gitea or Forgejo, by version 1 of its API. Untested against a real server. It has no ETags, so each
 * look costs three requests; no annotations; no reason why an issue was closed; and no digests.
 */
export const createGitea = (options: ForgeOptions): Forge => {
  const client = createClient(options);
  const { ask } = client;
  const { repository, now } = options;
  const lists = createLists(client, { parameter: 'limit', entries: 50 });
  const people = createPeople(client, lists, options.token, now);
  const readStatus = createStatus(client, lists, people);

  const readRepository = (signal: AbortSignal) =>
    ask({ path: '', schema: repositorySchema, signal });
  const readPull = (number: number, signal: AbortSignal) =>
    ask({ path: `pulls/${number}`, schema: pullSchema, signal });

  /** Of the thousand open ones, then of the thousand closed ones that moved last. */
  const findByHead = async (head: string, signal: AbortSignal): Promise<Pull | null> => {
    for (const state of ['open', 'closed']) {
      const query = { state, sort: 'recentupdate' };
      const found = await lists.first({ path: 'pulls', query, item: pullSchema, signal });
      const [newest] = found
        .filter((pull) => pull.head.ref === head)
        .sort((one, other) => other.number - one.number);
      if (newest !== undefined) return newest;
    }
    return null;
  };

  const refresh = async (
    pull: Pull,
    wanted: WantedPullRequest,
    signal: AbortSignal,
  ): Promise<PullRequest> => {
    const { body, base } = wanted;
    const title = titleOf(wanted.title, isDraft(pull));
    const isSame = pull.title === title && (pull.body ?? '') === body && pull.base.ref === base;
    if (pull.state !== 'open' || isSame) return toPullRequest(pull);
    const send = { method: 'PATCH', body: { title, body, base }, schema: pullSchema } as const;
    return toPullRequest(await ask({ ...send, path: `pulls/${pull.number}`, signal }));
  };

  const requireBranch = async (branch: string, signal: AbortSignal): Promise<void> => {
    const path = `branches/${branch.split('/').map(encodeURIComponent).join('/')}`;
    try {
      await ask({ path, schema: anything, signal });
    } catch (error) {
      if (isFault(error, 404))
        throw new ForgeError('gone', `${repository} has no branch ${branch}: push it first`);
      throw error;
    }
  };

  const create = async (wanted: WantedPullRequest, signal: AbortSignal): Promise<PullRequest> => {
    const { head, base, draft, body } = wanted;
    const fields = { head, base, body, title: titleOf(wanted.title, draft) };
    const send = { method: 'POST', path: 'pulls', body: fields, schema: pullSchema } as const;
    try {
      return toPullRequest(await ask({ ...send, signal }));
    } catch (error) {
      if (isFault(error, 404)) {
        await requireBranch(head, signal);
        await requireBranch(base, signal);
      }
      if (!isFault(error, 409)) throw error;
      // Made meanwhile, by a request whose answer was lost.
      const found = await findByHead(head, signal);
      if (found !== null) return refresh(found, wanted, signal);
      throw error;
    }
  };

  const merge = async (number: number, how: HowToMerge, signal: AbortSignal): Promise<void> => {
    const { sha, method, whenItMay } = how;
    const before = await readPull(number, signal);
    if (before.head.sha !== sha) throw movedError(number, before.head.sha);
    if (before.merged) return;
    const body = { Do: method, head_commit_id: sha, merge_when_checks_succeed: whenItMay };
    try {
      const path = `pulls/${number}/merge`;
      await ask({ method: 'POST', path, body, schema: anything, signal });
    } catch (error) {
      if (!isFault(error, 404, 405, 409, 422, 423)) throw error;
      const { merged, state, head } = await readPull(number, signal);
      if (head.sha !== sha) throw movedError(number, head.sha);
      if (merged) return;
      if (state === 'closed') throw new ForgeError('refused', `pull request ${number} is closed`);
      // It was asked for before.
      if (whenItMay && /already scheduled/i.test(error.message)) return;
      if (/try again later/i.test(error.message)) throw new ForgeError('away', error.message);
      throw new ForgeError('refused', error.message);
    }
  };
  const movedError = (number: number, sha: string): ForgeError =>
    new ForgeError('moved', `the head of pull request ${number} is ${sha} now`);

  return {
    name: `gitea: ${repository}`,
    about: async (signal) => {
      const { archived = false, permissions } = await readRepository(signal);
      const mayPush = permissions?.push !== false && !archived;
      return { account: await people.login(signal), mayPush, archived };
    },
    defaultBranch: async (signal) => (await readRepository(signal)).default_branch,
    publish: async (wanted, signal) => {
      requireWritable(repository, await readRepository(signal), lacksRight);
      const found = await findByHead(wanted.head, signal);
      return found === null ? create(wanted, signal) : refresh(found, wanted, signal);
    },
    status: async (number, known, signal) => {
      try {
        return await readStatus(number, known, signal);
      } catch (error) {
        if (!isFault(error, 404)) throw error;
        // Without the repository, nothing is known of the pull request.
        await readRepository(signal);
        return null;
      }
    },
    digests: () => Promise.resolve(null),
    ...createComments(client, createDiscussion(client, lists), people),
    ...createActions(client),
    merge,
    withdraw: async (number, signal) => {
      try {
        await ask({ method: 'DELETE', path: `pulls/${number}/merge`, schema: anything, signal });
      } catch (error) {
        // None is scheduled, or by somebody else.
        if (!isFault(error, 403, 404)) throw error;
      }
    },
    close: async (number, signal) => {
      if ((await readPull(number, signal)).state === 'closed') return;
      const send = { method: 'PATCH', path: `pulls/${number}`, body: { state: 'closed' } } as const;
      await ask({ ...send, schema: pullSchema, signal });
    },
    ...createIssues(client, lists, { repository, now }),
    sent: client.sent,
  };
};
