import { join } from 'node:path';
import { parseScript } from '../../src/actors/model/script.ts';
import { createScriptedModel } from '../../src/actors/model/scripted.ts';
import type { WorkflowView } from '../../src/actors/workflows/workflow-view.ts';
import { makeRepository, worktreesOf } from './git.ts';
import { type Running, type Setting, startSystem } from './running.ts';

type Call = readonly [tool: string, args: object];

/** What the agent of a task whose title contains the text does. */
export interface Part {
  readonly title: string;
  readonly writes?: Readonly<Record<string, string>>;
  readonly bash?: string;
  readonly says?: string;
}

const callsOf = ({ writes = {}, bash }: Part): readonly Call[] => [
  ...Object.entries(writes).map(([path, content]) => ['write', { path, content }] as const),
  ...(bash === undefined ? [] : [['bash', { command: bash }] as const]),
];

/** A script in which each part plays the tasks that its title fits; the first one wins. */
export const scriptOf = (parts: readonly Part[]) => ({
  scripts: parts.map((part) => ({
    title: part.title,
    turns: [
      ...callsOf(part).map(([tool, args]) => ({ calls: [{ tool, arguments: args }] })),
      {
        calls: [{ tool: 'finish', arguments: { status: 'done', summary: part.says ?? 'Done.' } }],
      },
    ],
  })),
});

/** Each task of a whole workflow is about 30 processes of git, which a busy machine starts slowly. */
export const wholeWorkflowMs = 400_000;

/** A real system with worktrees, whose agents play the parts. */
export const startWithParts = (parts: readonly Part[], setting: Setting = {}): Promise<Running> =>
  startSystem({
    root: makeRepository(),
    workspace: (root, state) => worktreesOf(root, join(state, 'worktrees')),
    model: createScriptedModel(parseScript(scriptOf(parts))),
    ...setting,
  });

/** Resolves when the workflow is as asked for; the test's time limit is the deadline. */
export const untilWorkflow = async (
  { system }: Pick<Running, 'system'>,
  workflowId: string,
  isSo: (view: WorkflowView) => boolean,
): Promise<WorkflowView> => {
  for (;;) {
    const view = await system.workflows.show(workflowId);
    if (isSo(view)) return view;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
};

export const isOver = ({ status }: WorkflowView): boolean => status !== 'started';

const summary = (covered: number): string =>
  JSON.stringify({ total: { lines: { covered, total: 100 } } });
/** Writes the reports of a test runner, as a verify command does. */
export const runner = (covered = 95, failure = ''): string =>
  `mkdir -p coverage && echo '${summary(covered)}' > coverage/coverage-summary.json && echo '<testsuite><testcase name="a"/>${failure}</testsuite>' > junit.xml`;

/** The parts of the feature workflow for a feature named Export, all going well. */
export const featureParts: readonly Part[] = [
  { title: 'Strategy of', writes: { 'docs/market/shop/market.md': 'x' }, says: 'Good.\nPURSUE' },
  { title: 'Archaeology for', writes: { 'docs/architecture/export/existing-code.md': 'x' } },
  { title: 'Requirements of', writes: { 'docs/product/export/stories.md': 'x' } },
  {
    title: 'Design of',
    writes: { 'docs/design/export/use.md': 'x', 'docs/design/export/wireframes/one.md': 'x' },
  },
  {
    title: 'Architecture of',
    writes: { 'docs/architecture/export/parts.md': 'x', 'docs/adr/0001-first.md': 'x' },
  },
  { title: 'Scope of', writes: { 'docs/product/export/scope.md': 'x' } },
  {
    title: 'Plan of',
    writes: { 'docs/architecture/export/plan.md': 'x', 'docs/adr/0002-plan.md': 'x' },
  },
  { title: 'Review of the plan', says: 'It is whole.\nAPPROVED' },
  { title: 'Build', writes: { 'src/export.js': 'export const x = 1;\n' } },
  { title: 'Test', writes: { 'test/export.test.js': 'x' } },
  { title: 'Review of the documentation', says: 'APPROVED' },
  { title: 'Review', says: 'APPROVED' },
  { title: 'Acceptance', writes: { 'test/acceptance.test.js': 'x' } },
  { title: 'Documentation of', writes: { 'docs/product/export/guide.md': 'x' } },
  { title: 'Deployment readiness', says: 'APPROVED' },
];

const research = 'docs/research/why-is-it-slow';
const report = `# Why is it slow?
## Summary
A loop.
## Objectives
- Q1: What is slow?
## Key findings
Q1: the loop.
## Detailed findings
### The loop
${research}/objectives.md:1
## Recommendations
Mend it.

Next steps:
- Mend the loop
## References
- objectives
`;

/** The parts of the research workflow for the question "Why is it slow?", all going well. */
export const researchParts: readonly Part[] = [
  { title: 'Objectives', writes: { [`${research}/objectives.md`]: '- Q1: What is slow?\n' } },
  { title: 'Exploration strategy', writes: { [`${research}/strategy.md`]: 'x' } },
  ...[1, 2, 3, 4].map((n) => ({
    title: `Investigation ${n} of`,
    writes: { [`${research}/findings-${n}.md`]: 'x' },
  })),
  { title: 'Synthesis', writes: { [`${research}/synthesis.md`]: 'x' } },
  { title: 'Report', writes: { [`${research}/report.md`]: report } },
];
