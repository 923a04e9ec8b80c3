import { z } from 'zod';
import { GitHubRefusal } from './github-client.ts';
import type { GitHubLists } from './github-lists.ts';
import type { ForgeIssue } from './port.ts';

const issueSchema = z.object({
  number: z.number(),
  html_url: z.string(),
  title: z.string(),
  body: z.string().nullable(),
  labels: z.array(z.union([z.string(), z.object({ name: z.string().nullish() })])),
  state: z.enum(['open', 'closed']),
  state_reason: z.string().nullish(),
  updated_at: z.string(),
  /** Present for a pull request, which this API lists too. */
  pull_request: z.unknown().optional(),
  /** Absent where the API has no dependencies. */
  issue_dependencies_summary: z.object({ blocked_by: z.number() }).nullish(),
});
type Issue = z.infer<typeof issueSchema>;

const blockerSchema = z.object({ number: z.number(), repository_url: z.string().optional() });

const textAtMost = 65_536;
const blockersAtMost = 100;
/** Each costs a request. */
const asksAtMost = 300;

const sentence = /^[\s>*_-]*(?:is )?(?:blocked by|depends on)\b:?(.*)$/i;
const openItem = /^\s*(?:[-*+]|\d+[.)])\s+\[ \]\s+#(\d+)\b/;
const anyNumber = /(?<![\w/])#(\d+)\b/g;

/** `Blocked by #3, #4` and the open items of a task list, `- [ ] #5`. */
export const blockersIn = (text: string): readonly number[] => {
  const found = text
    .slice(0, textAtMost)
    .split('\n')
    .flatMap((line) => {
      const [, item] = openItem.exec(line) ?? [];
      if (item !== undefined) return [item];
      const [, rest] = sentence.exec(line) ?? [];
      return [...(rest ?? '').matchAll(anyNumber)].map(([, number = '']) => number);
    });
  return [...new Set(found.map(Number))].slice(0, blockersAtMost);
};

const stateOf = ({ state, state_reason: reason }: Issue): ForgeIssue['state'] => {
  if (state === 'open') return 'open';
  return reason === 'not_planned' || reason === 'duplicate' ? 'not_planned' : 'done';
};

export const createIssues = (lists: GitHubLists, repository: string) => {
  const isHere = (url: string | undefined): boolean =>
    url === undefined || url.toLowerCase().endsWith(`/repos/${repository.toLowerCase()}`);

  /** Null: the API has no dependencies. */
  const askBlockers = async (number: number, signal: AbortSignal) => {
    const path = `issues/${number}/dependencies/blocked_by`;
    try {
      const found = await lists.first({ path, item: blockerSchema, signal });
      return found.filter((each) => isHere(each.repository_url)).map((each) => each.number);
    } catch (error) {
      if (error instanceof GitHubRefusal && error.fault === 'gone') return null;
      throw error;
    }
  };

  return async (labels: readonly string[], signal: AbortSignal): Promise<readonly ForgeIssue[]> => {
    const query = { state: 'open', sort: 'created', direction: 'asc', labels: labels.join(',') };
    const found = await lists.first({ path: 'issues', query, item: issueSchema, signal });
    let asks = 0;
    let hasDependencies = true;
    const blockersOf = async ({ number, body, issue_dependencies_summary: summary }: Issue) => {
      const own = blockersIn(body ?? '').filter((each) => each !== number);
      if (!hasDependencies || summary?.blocked_by === 0 || asks === asksAtMost) return own;
      asks += 1;
      const asked = await askBlockers(number, signal);
      hasDependencies = asked !== null || summary != null;
      return asked === null || asked.length === 0 ? own : asked;
    };
    const issues: ForgeIssue[] = [];
    for (const issue of found) {
      if (issue.pull_request != null) continue;
      issues.push({
        ...{ number: issue.number, url: issue.html_url, title: issue.title },
        text: (issue.body ?? '').slice(0, textAtMost),
        labels: issue.labels.flatMap((each) =>
          typeof each === 'string' ? each : (each.name ?? []),
        ),
        state: stateOf(issue),
        blockedBy: await blockersOf(issue),
        updatedAt: issue.updated_at,
      });
    }
    return issues;
  };
};
