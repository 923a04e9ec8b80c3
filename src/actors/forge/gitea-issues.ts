import { z } from 'zod';
import { type ForgeClient, ForgeRefusal } from './http/client.ts';
import type { ForgeLists } from './http/lists.ts';
import { blockersIn, issueTextAtMost } from './issue-text.ts';
import type { ForgeIssue } from './port.ts';

const repositorySchema = z.object({ full_name: z.string() });
const issueSchema = z.object({
  number: z.number(),
  html_url: z.string(),
  title: z.string(),
  body: z.string().nullable(),
  labels: z.array(z.object({ name: z.string() })).nullable(),
  milestone: z.object({ title: z.string() }).nullish(),
  state: z.enum(['open', 'closed']),
  updated_at: z.string(),
  pull_request: z.unknown().optional(),
});
type Issue = z.infer<typeof issueSchema>;
const blockerSchema = z.object({ number: z.number(), repository: repositorySchema.nullish() });

/** Each costs a request. */
const asksAtMost = 300;
const rememberMs = 10 * 60_000;
const knownAtMost = 1_000;

interface KnownBlockers {
  readonly at: string;
  readonly until: number;
  readonly blockers: readonly number[];
}

export const createIssues = (
  { ask }: ForgeClient,
  lists: ForgeLists,
  { repository, now }: { readonly repository: string; readonly now: () => number },
) => {
  const known = new Map<number, KnownBlockers>();

  /** Null: the server has no dependencies, or not for this repository. */
  const askBlockers = async (number: number, signal: AbortSignal) => {
    const path = `issues/${number}/dependencies`;
    try {
      const found = await lists.first({ path, item: blockerSchema, signal });
      const own = repository.toLowerCase();
      return found
        .filter((each) => (each.repository?.full_name ?? own).toLowerCase() === own)
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
    // Gitea has no reason why an issue was closed.
    state: issue.state === 'open' ? 'open' : 'done',
    url: issue.html_url,
    text: (issue.body ?? '').slice(0, issueTextAtMost),
    labels: (issue.labels ?? []).map(({ name }) => name),
    milestone: issue.milestone?.title ?? null,
    updatedAt: issue.updated_at,
  });

  const issues = async (
    labels: readonly string[],
    signal: AbortSignal,
  ): Promise<readonly ForgeIssue[]> => {
    const query = { state: 'open', type: 'issues', labels: labels.join(',') };
    const found = await lists.first({ path: 'issues', query, item: issueSchema, signal });
    let asks = 0;
    let hasDependencies = true;
    const blockersOf = async (issue: Issue): Promise<readonly number[]> => {
      const { number, updated_at: at } = issue;
      const before = known.get(number);
      if (before?.at === at && before.until > now()) return before.blockers;
      if (!hasDependencies || asks === asksAtMost) return blockersIn(issue);
      asks += 1;
      const asked = await askBlockers(number, signal);
      hasDependencies = asked !== null;
      const blockers = asked === null || asked.length === 0 ? blockersIn(issue) : asked;
      known.delete(number);
      if (asked !== null) known.set(number, { at, blockers, until: now() + rememberMs });
      for (const [oldest] of known) if (known.size > knownAtMost) known.delete(oldest);
      return blockers;
    };
    // A label that the repository does not have is ignored by the server.
    const wanted = found
      .filter((each) => each.pull_request == null)
      .filter((each) => labels.every((label) => each.labels?.some(({ name }) => name === label)))
      .sort((one, other) => one.number - other.number);
    const all: ForgeIssue[] = [];
    for (const each of wanted) all.push(asIssue(each, await blockersOf(each)));
    return all;
  };

  const issue = async (number: number, signal: AbortSignal): Promise<ForgeIssue | null> => {
    try {
      const found = await ask({ path: `issues/${number}`, schema: issueSchema, signal });
      return found.pull_request == null ? asIssue(found, blockersIn(found)) : null;
    } catch (error) {
      if (!(error instanceof ForgeRefusal) || error.fault !== 'gone') throw error;
      // Without the repository, nothing is known of the issue.
      await ask({ path: '', schema: repositorySchema, signal });
      return null;
    }
  };
  return { issues, issue };
};
