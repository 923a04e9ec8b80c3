import { z } from 'zod';
import { createComments } from './comments.ts';
import { createDiscussion } from './github-comments.ts';
import { createDigests } from './github-digests.ts';
import { createFailure } from './github-failure.ts';
import { createIssues } from './github-issues.ts';
import { createPeople } from './github-people.ts';
import { createStatus, pullSchema, toPullRequest } from './github-status.ts';
import { createThreads } from './github-threads.ts';
import { createClient, type ForgeOptions, ForgeRefusal } from './http/client.ts';
import { invalidFields, saysAlready, shortText } from './http/faults.ts';
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
  ': it lacks the right contents: write; give it that right, or give another token';

const repositorySchema = z.object({
  default_branch: z.string(),
  owner: z.object({ login: z.string() }),
  archived: z.boolean().optional(),
  permissions: z.object({ push: z.boolean() }).optional(),
});
const mergedSchema = z.object({ merged: z.boolean() });
const graphqlSchema = z.object({
  errors: z.array(z.object({ message: z.string(), type: z.string().optional() })).optional(),
});

/** It can be merged now: there is nothing that auto-merge would wait for. */
const nothingToWaitFor = /clean status|unstable status/i;

const enableAutoMerge = `mutation ($id: ID!, $sha: GitObjectID!, $method: PullRequestMergeMethod!) {
  enablePullRequestAutoMerge(
    input: { pullRequestId: $id, expectedHeadOid: $sha, mergeMethod: $method }
  ) { clientMutationId }
}`;

const disableAutoMerge = `mutation ($id: ID!) {
  disablePullRequestAutoMerge(input: { pullRequestId: $id }) { clientMutationId }
}`;

const isFault = (error: unknown, ...statuses: readonly number[]): error is ForgeRefusal =>
  error instanceof ForgeRefusal && statuses.includes(error.answer.status);

/** GitHub.com, or an Enterprise server, by its REST API. */
export const createGitHub = (options: ForgeOptions): Forge => {
  const client = createClient(options);
  const { ask } = client;
  const lists = createLists(client, { parameter: 'per_page', entries: 100 });
  const people = createPeople(client, options.token, options.now);
  const readStatus = createStatus(client, people);
  const { repository } = options;

  const readRepository = (signal: AbortSignal) =>
    ask({ path: '', schema: repositorySchema, signal });
  const readPull = (number: number, signal: AbortSignal) =>
    ask({ path: `pulls/${number}`, schema: pullSchema, signal });

  const findByHead = async (owner: string, head: string, signal: AbortSignal) => {
    const query = { head: `${owner}:${head}`, state: 'all', sort: 'created', direction: 'desc' };
    const schema = z.array(pullSchema);
    const found = await ask({ path: 'pulls', query: { ...query, per_page: 10 }, schema, signal });
    return found.find((pull) => pull.head.ref === head) ?? null;
  };

  const refresh = async (
    pull: z.infer<typeof pullSchema>,
    { title, body, base }: WantedPullRequest,
    signal: AbortSignal,
  ): Promise<PullRequest> => {
    const isSame = pull.title === title && (pull.body ?? '') === body && pull.base.ref === base;
    if (pull.state !== 'open' || isSame) return toPullRequest(pull);
    const path = `pulls/${pull.number}`;
    const send = {
      method: 'PATCH',
      path,
      body: { title, body, base },
      schema: pullSchema,
    } as const;
    return toPullRequest(await ask({ ...send, signal }));
  };

  const create = async (
    owner: string,
    wanted: WantedPullRequest,
    signal: AbortSignal,
  ): Promise<PullRequest> => {
    const { head, base } = wanted;
    try {
      const send = {
        method: 'POST',
        path: 'pulls',
        body: { ...wanted },
        schema: pullSchema,
      } as const;
      return toPullRequest(await ask({ ...send, signal }));
    } catch (error) {
      if (!isFault(error, 422)) throw error;
      const { data } = error.answer;
      const fields = invalidFields(data);
      // Made meanwhile, by a request whose answer was lost.
      if (saysAlready(data)) {
        const found = await findByHead(owner, head, signal);
        if (found !== null) return refresh(found, wanted, signal);
        throw new ForgeError(
          'away',
          `${client.host} has a pull request of ${head} and does not list it yet`,
        );
      }
      for (const [field, branch] of [
        ['head', head],
        ['base', base],
      ] as const)
        if (fields.includes(field))
          throw new ForgeError('gone', `${repository} has no branch ${branch}: push it first`);
      throw error;
    }
  };

  const mergeNow = async (number: number, { sha, method }: HowToMerge, signal: AbortSignal) => {
    const body = { sha, merge_method: method };
    const path = `pulls/${number}/merge`;
    try {
      await ask({ method: 'PUT', path, body, schema: mergedSchema, signal });
    } catch (error) {
      if (!isFault(error, 405, 409, 422)) throw error;
      const { merged, state, head } = await readPull(number, signal);
      // The answer to an earlier request was lost.
      if (merged === true && head.sha === sha) return;
      if (head.sha !== sha) throw movedError(number, head.sha);
      if (state === 'closed') throw new ForgeError('refused', `pull request ${number} is closed`);
      throw new ForgeError('refused', error.message);
    }
  };

  const movedError = (number: number, sha: string): ForgeError =>
    new ForgeError('moved', `the head of pull request ${number} is ${sha} now`);

  const mergeWhenItMay = async (number: number, how: HowToMerge, signal: AbortSignal) => {
    const { node_id, head, merged } = await readPull(number, signal);
    if (head.sha !== how.sha) throw movedError(number, head.sha);
    if (merged === true) return;
    const variables = { id: node_id, sha: how.sha, method: how.method.toUpperCase() };
    const body = { query: enableAutoMerge, variables };
    const send = { method: 'POST', path: '/graphql', body, schema: graphqlSchema } as const;
    const { errors = [] } = await ask({ ...send, signal });
    const [first] = errors;
    if (first === undefined) return;
    if (nothingToWaitFor.test(first.message)) return mergeNow(number, how, signal);
    const said = shortText(first.message);
    if (/head/i.test(first.message) && /modified|oid|sha/i.test(first.message))
      throw movedError(number, (await readPull(number, signal)).head.sha);
    if (first.type === 'FORBIDDEN')
      throw new ForgeError(
        'right',
        `the token may not merge (${said}); give it contents: write and pull requests: write`,
      );
    throw new ForgeError(
      'refused',
      `auto-merge: ${said}; allow auto-merge in the settings of ${repository}`,
    );
  };

  const withdraw = async (number: number, signal: AbortSignal): Promise<void> => {
    const { node_id: id, auto_merge: asked } = await readPull(number, signal);
    if (asked == null || !(await people.self(signal))(asked.enabled_by)) return;
    const body = { query: disableAutoMerge, variables: { id } };
    const send = { method: 'POST', path: '/graphql', body, schema: graphqlSchema } as const;
    const { errors = [] } = await ask({ ...send, signal }).catch((error: unknown) => {
      if (!isFault(error, 404)) throw error;
      // It is on, so that this is no pull request that is gone.
      return { errors: [{ message: error.message, type: 'FORBIDDEN' }] };
    });
    const [first] = errors;
    // It may be off already, since an earlier answer was lost.
    if (first === undefined || (await readPull(number, signal)).auto_merge == null) return;
    throw new ForgeError(
      first.type === 'FORBIDDEN' ? 'right' : 'refused',
      `the auto-merge of pull request ${number} cannot be switched off (${shortText(first.message)}): switch it off there, so that no head is merged that was not tested`,
    );
  };

  return {
    name: `github: ${repository}`,
    about: async (signal) => {
      const { archived = false, permissions } = await readRepository(signal);
      const mayPush = permissions?.push !== false && !archived;
      return { account: await people.login(signal), mayPush, archived };
    },
    defaultBranch: async (signal) => (await readRepository(signal)).default_branch,
    publish: async (wanted, signal) => {
      const about = await readRepository(signal);
      requireWritable(repository, about, lacksRight);
      const owner = about.owner.login;
      const found = await findByHead(owner, wanted.head, signal);
      return found === null ? create(owner, wanted, signal) : refresh(found, wanted, signal);
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
    digests: createDigests(client, repository),
    ...createComments(
      client,
      createDiscussion(client, lists, createThreads(client, repository)),
      people,
    ),
    failure: createFailure(client),
    rerun: async ({ id }, signal) => {
      const [kind, job] = id.split(':');
      if (kind !== 'run') return false;
      try {
        const path = `actions/jobs/${job}/rerun`;
        await ask({ method: 'POST', path, schema: z.unknown(), signal });
        return true;
      } catch (error) {
        // Not a job of Actions, too old, or not for this token.
        if (isFault(error, 403, 404, 422)) return false;
        throw error;
      }
    },
    merge: (number, how, signal) =>
      how.whenItMay ? mergeWhenItMay(number, how, signal) : mergeNow(number, how, signal),
    withdraw,
    close: async (number, signal) => {
      if ((await readPull(number, signal)).state === 'closed') return;
      const send = { method: 'PATCH', path: `pulls/${number}`, body: { state: 'closed' } } as const;
      await ask({ ...send, schema: pullSchema, signal });
    },
    ...createIssues(client, lists, repository),
    sent: client.sent,
  };
};
