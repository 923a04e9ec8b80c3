import type { ForgeProblem } from '../../../machines/source/forge-problem.ts';
import type { Forge, ForgeIssue } from '../../forge/port.ts';
import { problemIn } from '../publishing/until-news.ts';
import type { HowToImport, Imported } from './import-tasks.ts';
import { itemOf } from './issue-item.ts';
import type { ImportItem } from './order-items.ts';

/** The forge with a repository; null: that of the project. Rejects with `PullRequestError`. */
export type ForgeOf = (repository: string | null) => Promise<Forge>;

export interface IssuesRequest {
  readonly labels: readonly string[];
  /** The title of one. */
  readonly milestone: string | null;
  readonly dryRun: boolean;
}

/** With a problem, nothing was read. */
export type ImportedIssues = Imported & {
  readonly forge?: string;
  readonly problem?: Omit<ForgeProblem, 'retryAt'>;
};

export interface IssueImport {
  /** Makes tasks of the open issues of the project's forge, and brings those that are there up to date. */
  importIssues(request: IssuesRequest): Promise<ImportedIssues>;
}

export const itemsOf = (issues: readonly ForgeIssue[]): readonly ImportItem[] =>
  issues.map((issue) =>
    itemOf(issue, (number) => `${issue.url.slice(0, issue.url.lastIndexOf('/'))}/${number}`),
  );

const limitMs = 120_000;

export const createIssueImport = (
  forgeOf: ForgeOf,
  importItems: (items: readonly ImportItem[], how: HowToImport) => Promise<Imported>,
): IssueImport => ({
  importIssues: async ({ labels, milestone, dryRun }) => {
    let found: { readonly forge: string; readonly issues: readonly ForgeIssue[] };
    try {
      const forge = await forgeOf(null);
      const issues = await forge.issues(labels, AbortSignal.timeout(limitMs));
      found = { forge: forge.name, issues };
    } catch (error) {
      const { needs, fault, message } = problemIn(error);
      return { items: [], problem: { needs, fault, message } };
    }
    const wanted = found.issues.filter(
      (issue) => milestone === null || issue.milestone === milestone,
    );
    const imported = await importItems(itemsOf(wanted), { dryRun, again: true });
    return { forge: found.forge, ...imported };
  },
});
