import { z } from 'zod';
import { type ForgeClient, ForgeRefusal } from './http/client.ts';
import type { ForgeLists } from './http/lists.ts';
import { blockersIn, issueTextAtMost } from './issue-text.ts';
import type { ForgeIssue } from './port.ts';

const issueSchema = z.object({
  number: z.number(),
  html_url: z.string(),
  title: z.string(),
  body: z.string().nullable(),
  labels: z.array(z.union([z.string(), z.object({ name: z.string().nullish() })])),
  milestone: z.object({ title: z.string() }).nullish(),
  state: z.enum(['open', 'closed']),
  state_reason: z.string().nullish(),
  updated_at: z.string(),
  repository_url: z.string().optional(),
  /** Present for a pull request, which this API lists too. */
  pull_request: z.unknown().optional(),
  /** Absent where the API has no dependencies. */
  issue_dependencies_summary: z.object({ blocked_by: z.number() }).nullish(),
});
type Issue = z.infer<typeof issueSchema>;

const blockerSchema = z.object({ number: z.number(), repository_url: z.string().optional() });

/** Each costs a request. */
const asksAtMost = 300;

const stateOf = ({ state, state_reason: reason }: Issue): ForgeIssue['state'] => {
  if (state === 'open') return 'open';
  return reason === 'not_planned' || reason === 'duplicate' ? 'not_planned' : 'done';
};

const fullNameSchema = z.object({ full_name: z.string() });

interface KnownBlockers {
  readonly of: string;
  readonly blockers: readonly number[];
}
const knownAtMost = 1_000;

export const createIssues = (
  { ask }: Pick<ForgeClient, 'ask'>,
  lists: ForgeLists,
  repository: string,
) => {
  const isOf = (name: string, url: string | undefined): boolean =>
    url === undefined || url.toLowerCase().endsWith(`/repos/${name.toLowerCase()}`);
  const known = new Map<number, KnownBlockers>();

  /** Null: the API has no dependencies. */
  const askBlockers = async (number: number, signal: AbortSignal) => {
    const path = `issues/${number}/dependencies/blocked_by`;
    try {
      const found = await lists.first({ path, item: blockerSchema, signal });
      return found
        .filter((each) => isOf(repository, each.repository_url))
        .map((each) => each.number);
    } catch (error) {
      if (error instanceof ForgeRefusal && error.fault === 'gone') return null;
      throw error;
    }
  };

  const asIssue = (issue: Issue, blockedBy: readonly number[]): ForgeIssue => ({
    number: issue.number,
    title: issue.title,
    blockedBy,
    state: stateOf(issue),
    url: `${new URL(issue.html_url).origin}/${repository}/issues/${issue.number}`,
    text: (issue.body ?? '').slice(0, issueTextAtMost),
    labels: issue.labels.flatMap((each) => (typeof each === 'string' ? each : (each.name ?? []))),
    milestone: issue.milestone?.title ?? null,
    updatedAt: issue.updated_at,
  });

  const issues = async (
    labels: readonly string[],
    signal: AbortSignal,
  ): Promise<readonly ForgeIssue[]> => {
    const query = { state: 'open', sort: 'created', direction: 'asc', labels: labels.join(',') };
    const found = await lists.first({ path: 'issues', query, item: issueSchema, signal });
    let asks = 0;
    let hasDependencies = true;
    const blockersOf = async (issue: Issue): Promise<readonly number[]> => {
      const own = blockersIn(issue);
      const { number, updated_at: at, issue_dependencies_summary: summary } = issue;
      if (!hasDependencies || summary?.blocked_by === 0 || asks === asksAtMost) return own;
      const of = `${at} ${summary?.blocked_by}`;
      const before = known.get(number);
      if (summary != null && before?.of === of)
        return before.blockers.length === 0 ? own : before.blockers;
      asks += 1;
      const asked = await askBlockers(number, signal);
      hasDependencies = asked !== null || summary != null;
      if (asked !== null && known.size < knownAtMost) known.set(number, { of, blockers: asked });
      return asked === null || asked.length === 0 ? own : asked;
    };
    const all: ForgeIssue[] = [];
    for (const issue of found)
      if (issue.pull_request == null) all.push(asIssue(issue, await blockersOf(issue)));
    return all;
  };

  const issue = async (number: number, signal: AbortSignal): Promise<ForgeIssue | null> => {
    const nameNow = async (): Promise<string> =>
      (await ask({ path: '', schema: fullNameSchema, signal })).full_name;
    try {
      const found = await ask({ path: `issues/${number}`, schema: issueSchema, signal });
      // A transferred issue and a renamed repository are both sent on.
      const isHere =
        isOf(repository, found.repository_url) || isOf(await nameNow(), found.repository_url);
      return found.pull_request == null && isHere ? asIssue(found, blockersIn(found)) : null;
    } catch (error) {
      if (!(error instanceof ForgeRefusal) || error.fault !== 'gone') throw error;
      // Without the repository, nothing is known of the issue.
      await nameNow();
      return null;
    }
  };
  return { issues, issue };
};
