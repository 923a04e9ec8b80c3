import { z } from 'zod';
import type { People } from './comments.ts';
import { userSchema } from './github-people.ts';
import { type ForgeClient, unchanged } from './http/client.ts';
import { notOurs, shortText } from './http/faults.ts';
import type { ForgeCheck, PullRequest, PullRequestStatus } from './port.ts';

/** Names of checks are text of strangers. */
const nameAtMost = 100;

export const pullSchema = z.object({
  number: z.number(),
  node_id: z.string(),
  html_url: z.string(),
  state: z.enum(['open', 'closed']),
  title: z.string(),
  body: z.string().nullable(),
  draft: z.boolean().optional(),
  updated_at: z.string(),
  /** Absent in lists, as the next ones. */
  merged: z.boolean().optional(),
  merged_at: z.string().nullable(),
  mergeable: z.boolean().nullish(),
  mergeable_state: z.string().optional(),
  merge_commit_sha: z.string().nullish(),
  auto_merge: z.object({ enabled_by: userSchema }).nullish(),
  head: z.object({ sha: z.string(), ref: z.string() }),
  base: z.object({ ref: z.string() }),
});
export type Pull = z.infer<typeof pullSchema>;

const stateOf = ({ state, merged, merged_at }: Pull): PullRequest['state'] => {
  if (state === 'open') return 'open';
  return merged === true || merged_at !== null ? 'merged' : 'closed';
};

const mergeableOf = ({ mergeable, mergeable_state: state }: Pull): PullRequest['mergeable'] => {
  if (state === 'dirty' || mergeable === false) return 'conflicting';
  if (state === 'behind') return 'behind';
  return mergeable === true ? 'yes' : 'unknown';
};

export const toPullRequest = (pull: Pull): PullRequest => {
  const state = stateOf(pull);
  return {
    number: pull.number,
    url: pull.html_url,
    state,
    headSha: pull.head.sha,
    base: pull.base.ref,
    draft: pull.draft ?? false,
    updatedAt: pull.updated_at,
    mergeable: mergeableOf(pull),
    // Before it is merged, it is a commit that GitHub made to try.
    ...(state === 'merged' && pull.merge_commit_sha != null
      ? { mergeCommit: pull.merge_commit_sha }
      : {}),
  };
};

const runSchema = z.object({
  id: z.number(),
  name: z.string(),
  status: z.string(),
  conclusion: z.string().nullable(),
  html_url: z.string().nullish(),
});
const runsSchema = z.object({ check_runs: z.array(runSchema) });
const statusSchema = z.object({
  id: z.number(),
  context: z.string(),
  state: z.string(),
  target_url: z.string().nullish(),
});
const statusesSchema = z.object({ statuses: z.array(statusSchema) });
const reviewSchema = z.object({
  id: z.number(),
  user: userSchema,
  state: z.string(),
  author_association: z.string().optional(),
});

type Review = z.infer<typeof reviewSchema>;

/** Of reviews; the others are remarks. */
const decisions = new Set(['APPROVED', 'CHANGES_REQUESTED', 'DISMISSED']);
const passing = new Set(['success', 'neutral', 'skipped']);

const stateOfRun = ({ status, conclusion }: z.infer<typeof runSchema>): ForgeCheck['state'] => {
  if (status !== 'completed' || conclusion === null) return 'pending';
  return passing.has(conclusion) ? 'green' : 'red';
};

const stateOfStatus = (state: string): ForgeCheck['state'] => {
  if (state === 'pending') return 'pending';
  return state === 'success' ? 'green' : 'red';
};

const urlOf = (url: string | null | undefined) => (url ? { url } : {});

const checkOfRun = (run: z.infer<typeof runSchema>): ForgeCheck => ({
  id: `run:${run.id}`,
  name: shortText(run.name, nameAtMost),
  state: stateOfRun(run),
  ...urlOf(run.html_url),
});

const checkOfStatus =
  (sha: string) =>
  ({ id, context, state, target_url }: z.infer<typeof statusSchema>): ForgeCheck => ({
    id: `status:${id}:${sha}`,
    name: shortText(context, nameAtMost),
    state: stateOfStatus(state),
    ...urlOf(target_url),
  });

/** GitHub has a hundred on each; more are not read. */
const pagesAtMost = 5;
const worst: readonly ForgeCheck['state'][] = ['green', 'pending', 'red'];

/** One of each name: the newest run; of a run and a status, the one that holds it up. */
const oneOfEach = (runs: readonly ForgeCheck[], statuses: readonly ForgeCheck[]) => {
  const named = new Map(runs.map((check) => [check.name, check]));
  for (const check of new Map(statuses.map((each) => [each.name, each])).values()) {
    const run = named.get(check.name);
    if (run === undefined || worst.indexOf(check.state) > worst.indexOf(run.state))
      named.set(check.name, check);
  }
  return [...named.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
};

interface Part<Item> {
  /** Names its ETag. */
  readonly key: string;
  readonly path: string;
  readonly schema: z.ZodType<readonly Item[]>;
}

type ETags = Readonly<Record<string, string>>;

const runsOf = (sha: string): Part<ForgeCheck> => ({
  key: `runs:${sha}`,
  path: `commits/${sha}/check-runs`,
  // Several apps, or several runs of one, may use the same name.
  schema: runsSchema.transform(({ check_runs }) =>
    check_runs.toSorted((one, other) => one.id - other.id).map(checkOfRun),
  ),
});

const statusesOf = (sha: string): Part<ForgeCheck> => ({
  key: `statuses:${sha}`,
  path: `commits/${sha}/status`,
  schema: statusesSchema.transform(({ statuses }) => statuses.map(checkOfStatus(sha))),
});

const reviewsOf = (number: number): Part<Review> => ({
  key: 'reviews',
  path: `pulls/${number}/reviews`,
  schema: z.array(reviewSchema),
});

/** A part of a status, read again only when it changed. */
const createParts = ({ ask, request }: ForgeClient) => {
  const query = { per_page: 100 };
  return async <Item>(
    { key, path, schema }: Part<Item>,
    known: ETags,
    signal: AbortSignal,
  ): Promise<typeof unchanged | { readonly items: readonly Item[]; readonly etags: ETags }> => {
    const first = await request({ path, query, schema, signal, etag: known[key] });
    if (first === unchanged) return unchanged;
    const items = [...first.data];
    for (let page = 2; page <= Math.min(first.lastPage, pagesAtMost); page += 1)
      items.push(...(await ask({ path, query: { ...query, page }, schema, signal })));
    // The ETag of the first page does not change with a later one.
    const isWhole = first.lastPage === 1 && first.etag !== null;
    return { items, etags: isWhole ? { [key]: first.etag ?? '' } : {} };
  };
};

const kept = (known: ETags, ...keys: readonly string[]): ETags =>
  Object.fromEntries(keys.flatMap((key) => (known[key] === undefined ? [] : [[key, known[key]]])));

export const createStatus = (client: ForgeClient, people: People) => {
  const readPart = createParts(client);

  const readChecks = async (sha: string, known: PullRequestStatus | null, signal: AbortSignal) => {
    const [runs, statuses] = [runsOf(sha), statusesOf(sha)];
    const before = known?.etags ?? {};
    const [newRuns, newStatuses] = await Promise.all([
      readPart(runs, before, signal),
      readPart(statuses, before, signal),
    ]);
    if (newRuns === unchanged && newStatuses === unchanged)
      return { checks: known?.checks ?? [], etags: kept(before, runs.key, statuses.key) };
    // What is known is of both together.
    const ofRuns = newRuns === unchanged ? await readPart(runs, {}, signal) : newRuns;
    const ofStatuses =
      newStatuses === unchanged ? await readPart(statuses, {}, signal) : newStatuses;
    if (ofRuns === unchanged || ofStatuses === unchanged)
      throw notOurs({ host: client.host, what: runs.path });
    return {
      checks: oneOfEach(ofRuns.items, ofStatuses.items),
      etags: { ...ofRuns.etags, ...ofStatuses.etags },
    };
  };

  const readReview = async (
    number: number,
    known: PullRequestStatus | null,
    signal: AbortSignal,
  ) => {
    const before = known?.etags ?? {};
    const part = reviewsOf(number);
    const read = await readPart(part, before, signal);
    if (read === unchanged)
      return { review: known?.review ?? 'none', etags: kept(before, part.key) } as const;
    const last = new Map<string, Review>();
    for (const each of read.items)
      if (each.user !== null && !people.isBot(each.user) && decisions.has(each.state))
        last.set(each.user.login, each);
    const canWrite = people.judge(signal);
    const states: string[] = [];
    for (const each of last.values()) if (await canWrite(each)) states.push(each.state);
    const isApproved = states.includes('APPROVED') ? 'approved' : 'none';
    const review = states.includes('CHANGES_REQUESTED') ? 'changes' : isApproved;
    return { review, etags: read.etags } as const;
  };

  return async (
    number: number,
    given: PullRequestStatus | null,
    signal: AbortSignal,
  ): Promise<PullRequestStatus> => {
    const known = given?.number === number ? given : null;
    // GitHub works out whether it can be merged after it was asked: it may not be a change.
    const isSettled = known !== null && known.mergeable !== 'unknown';
    const answer = await client.request({
      path: `pulls/${number}`,
      schema: pullSchema,
      signal,
      etag: isSettled ? known.etags['pull'] : undefined,
    });
    const tag = answer === unchanged ? known?.etags['pull'] : answer.etag;
    const pull = answer === unchanged ? known : toPullRequest(answer.data);
    if (pull === null) throw notOurs({ host: client.host, what: 'a pull request' });
    const ofHead = known?.headSha === pull.headSha ? known : null;
    const own: Record<string, string> = tag == null ? {} : { pull: tag };
    if (pull.state !== 'open')
      return {
        ...pull,
        checks: ofHead?.checks ?? [],
        review: known?.review ?? 'none',
        etags: own,
      };
    const [{ checks, etags }, { review, etags: ofReviews }] = await Promise.all([
      readChecks(pull.headSha, ofHead, signal),
      readReview(number, known, signal),
    ]);
    return { ...pull, checks, review, etags: { ...own, ...etags, ...ofReviews } };
  };
};
