import { z } from 'zod';
import type { People } from './comments.ts';
import { userSchema } from './gitea-people.ts';
import type { ForgeClient } from './http/client.ts';
import { shortText } from './http/faults.ts';
import type { ForgeLists } from './http/lists.ts';
import type { ForgeCheck, PullRequest, PullRequestStatus } from './port.ts';

const nameAtMost = 100;

export const pullSchema = z.object({
  number: z.number(),
  html_url: z.string(),
  state: z.enum(['open', 'closed']),
  title: z.string(),
  body: z.string().nullable(),
  /** Absent in old versions, where the title alone says it. */
  draft: z.boolean().optional(),
  updated_at: z.string(),
  merged: z.boolean(),
  mergeable: z.boolean(),
  merge_commit_sha: z.string().nullish(),
  head: z.object({ sha: z.string(), ref: z.string() }),
  base: z.object({ ref: z.string() }),
});
export type Pull = z.infer<typeof pullSchema>;

const statusSchema = z.object({
  id: z.number(),
  context: z.string(),
  status: z.string(),
  target_url: z.string().nullish(),
});
const combinedSchema = z.object({ statuses: z.array(statusSchema).nullable() });
export const reviewSchema = z.object({
  id: z.number(),
  user: userSchema,
  state: z.string(),
  body: z.string().nullable(),
  dismissed: z.boolean().optional(),
  comments_count: z.number().optional(),
  submitted_at: z.string(),
});
type Review = z.infer<typeof reviewSchema>;

const draftTitle = /^(?:WIP:|\[WIP\])\s*/i;

export const isDraft = ({ draft, title }: Pick<Pull, 'draft' | 'title'>): boolean =>
  draft === true || draftTitle.test(title);

const stateOf = ({ state, merged }: Pull): PullRequest['state'] => {
  if (merged) return 'merged';
  return state;
};

/** Gitea says `false` also while it still tries, and of each draft: two looks have to agree. */
const mergeableOf = (pull: Pull, known: PullRequestStatus | null): PullRequest['mergeable'] => {
  if (pull.mergeable) return 'yes';
  const isAgain = known?.headSha === pull.head.sha && known.mergeable !== 'yes';
  return isAgain && !isDraft(pull) && pull.state === 'open' ? 'conflicting' : 'unknown';
};

export const toPullRequest = (pull: Pull, known: PullRequestStatus | null = null): PullRequest => ({
  number: pull.number,
  url: pull.html_url,
  state: stateOf(pull),
  headSha: pull.head.sha,
  base: pull.base.ref,
  draft: isDraft(pull),
  updatedAt: pull.updated_at,
  mergeable: mergeableOf(pull, known),
  ...(pull.merged && pull.merge_commit_sha != null ? { mergeCommit: pull.merge_commit_sha } : {}),
});

const passing = new Set(['success', 'skipped']);
const stateOfStatus = (status: string): ForgeCheck['state'] => {
  if (status === 'pending') return 'pending';
  return passing.has(status) ? 'green' : 'red';
};

const decisions = new Set(['APPROVED', 'REQUEST_CHANGES']);
const statusesAtOnce = 50;
const pagesAtMost = 10;

export const createStatus = ({ ask }: ForgeClient, lists: ForgeLists, people: People) => {
  const readChecks = async (sha: string, signal: AbortSignal): Promise<readonly ForgeCheck[]> => {
    const path = `commits/${sha}/status`;
    const all: z.infer<typeof statusSchema>[] = [];
    for (let page = 1; page <= pagesAtMost; page += 1) {
      const query = { limit: statusesAtOnce, page };
      const { statuses } = await ask({ path, query, schema: combinedSchema, signal });
      all.push(...(statuses ?? []));
      if ((statuses ?? []).length < statusesAtOnce) break;
    }
    return all
      .map(({ id, context, status, target_url: url }) => ({
        id: `status:${id}:${sha}`,
        name: shortText(context, nameAtMost),
        state: stateOfStatus(status),
        ...(url ? { url } : {}),
      }))
      .sort((one, other) => (one.name < other.name ? -1 : 1));
  };

  const readReview = async (number: number, signal: AbortSignal) => {
    const path = `pulls/${number}/reviews`;
    const last = new Map<string, Review>();
    for (const each of await lists.newest({ path, item: reviewSchema, signal }))
      if (each.user !== null && !people.isBot(each.user) && decisions.has(each.state))
        last.set(each.user.login, each);
    const canWrite = people.judge(signal);
    const states: string[] = [];
    for (const each of last.values())
      if (each.dismissed !== true && (await canWrite(each))) states.push(each.state);
    if (states.includes('REQUEST_CHANGES')) return 'changes';
    return states.includes('APPROVED') ? 'approved' : 'none';
  };

  return async (
    number: number,
    given: PullRequestStatus | null,
    signal: AbortSignal,
  ): Promise<PullRequestStatus> => {
    const known = given?.number === number ? given : null;
    const found = await ask({ path: `pulls/${number}`, schema: pullSchema, signal });
    const pull = toPullRequest(found, known);
    if (pull.state !== 'open') {
      const checks = known?.headSha === pull.headSha ? known.checks : [];
      return { ...pull, checks, review: known?.review ?? 'none', etags: {} };
    }
    const [checks, review] = await Promise.all([
      readChecks(pull.headSha, signal),
      readReview(number, signal),
    ]);
    return { ...pull, checks, review, etags: {} };
  };
};
