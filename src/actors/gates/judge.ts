import type { WorkflowCheck } from '../../machines/workflow-definition.ts';
import { runInThread, serveThread, ThreadLimit } from '../process/run-in-thread.ts';
import { checkArtifacts, checkOnlyChanges } from './artifacts.ts';
import { fail, type Judgement, type StepEvidence } from './evidence.ts';
import { checkCoverage, checkTests } from './reports.ts';
import { checkAnswers, checkFindings, checkNextSteps, checkSections } from './research.ts';
import { checkVerdict } from './words.ts';

const longestMs = 60_000;

/** What a gate looks at: `files.read`, `files.list` and `report` stay in the main thread. */
type Reading =
  | { readonly call: 'list'; readonly path: string }
  | { readonly call: 'read'; readonly path: string; readonly bytes: number }
  | { readonly call: 'report'; readonly path: string };

type PlainEvidence = Omit<StepEvidence, 'files' | 'report'> & {
  readonly changed: readonly string[] | null;
};

interface Judged {
  readonly check: WorkflowCheck;
  readonly evidence: PlainEvidence;
}

/** The words of the check's paths are filled in. */
const judge = (check: WorkflowCheck, evidence: StepEvidence): Judgement | Promise<Judgement> => {
  switch (check.check) {
    case 'artifacts':
      return checkArtifacts(evidence);
    case 'verdict':
      return checkVerdict(evidence);
    case 'coverage':
      return checkCoverage(evidence, check.minimum, check.reports);
    case 'tests':
      return checkTests(evidence, check.minimum, check.reports);
    case 'sections':
      return checkSections(evidence, check.path, check.sections);
    case 'answers':
      return checkAnswers(evidence, check.path, check.questions);
    case 'findings':
      return checkFindings(evidence, check.path, check.section);
    case 'next_steps':
      return checkNextSteps(evidence, check.path, check.section);
    case 'only_changes':
      return checkOnlyChanges(evidence, check.allowed);
  }
};

/** Judges in a thread: agents wrote what a gate reads. A gate at its deadline fails. */
export const judgeInThread = async (
  check: WorkflowCheck,
  { files, report, ...evidence }: StepEvidence,
  timeoutMs = longestMs,
): Promise<Judgement> => {
  const read = (reading: Reading): Promise<unknown> => {
    if (reading.call === 'list') return files.list(reading.path);
    return reading.call === 'read' ? files.read(reading.path, reading.bytes) : report(reading.path);
  };
  try {
    return await runInThread<Judgement, Reading>({
      module: import.meta.url,
      name: 'gate',
      input: { check, evidence: { ...evidence, changed: files.changed } } satisfies Judged,
      timeoutMs,
      answer: read,
    });
  } catch (error) {
    if (!(error instanceof ThreadLimit)) throw error;
    return fail(
      `the check ${check.check} of ${evidence.taskId} ${error.message}; make what it reads smaller, then retry the workflow`,
    );
  }
};

serveThread<Judged, Reading>('gate', ({ check, evidence: { changed, ...plain } }, ask) =>
  judge(check, {
    ...plain,
    files: {
      changed,
      list: (path) => ask({ call: 'list', path }),
      read: (path, bytes) => ask({ call: 'read', path, bytes }),
    },
    report: (path) => ask({ call: 'report', path }),
  }),
);
