import { readCoverage } from './coverage.ts';
import { fail, type Judgement, pass, type StepEvidence } from './evidence.ts';
import { reportMaxBytes } from './read-report.ts';
import { readTestCounts } from './test-counts.ts';
import { UnreadableReport } from './xml-tags.ts';

interface FoundReport {
  readonly path: string;
  readonly text: string;
}

/** Written by a verify command, or by the attempt into its diff. */
const findReport = async (
  { files, report, isVerified }: StepEvidence,
  paths: readonly string[],
): Promise<FoundReport | null> => {
  for (const path of paths) {
    const written = await report(path);
    if (written !== null) return { path, text: written };
  }
  for (const path of paths) {
    if (isVerified || files.changed?.includes(path) !== true) continue;
    const text = await files.read(path, reportMaxBytes);
    if (text !== null) return { path, text };
  }
  return null;
};

const judgeReport = async (
  evidence: StepEvidence,
  paths: readonly string[],
  read: (text: string) => Judgement,
): Promise<Judgement> => {
  const found = await findReport(evidence, paths);
  if (found === null)
    return fail(
      `found no report of ${evidence.taskId}; looked for ${paths.join(', ')}, ${evidence.isVerified ? 'written by its verify commands' : 'in its diff (no command of --verify ran; give one when you start a workflow)'}`,
    );
  try {
    const { passed, says } = read(found.text);
    return { passed, says: `${says} (${found.path} of ${evidence.taskId})` };
  } catch (error) {
    if (!(error instanceof UnreadableReport)) throw error;
    return fail(`${found.path} of ${evidence.taskId} ${error.message}`);
  }
};

export const checkCoverage = (
  evidence: StepEvidence,
  minimum: number,
  paths: readonly string[],
): Promise<Judgement> =>
  judgeReport(evidence, paths, (text) => {
    const { covered, total, unit, format } = readCoverage(text);
    const percent = Math.floor((covered / total) * 1_000) / 10;
    const says = `${percent} % of ${unit} (${covered} of ${total}, ${format}); at least ${minimum} % is asked for`;
    return covered * 100 >= minimum * total ? pass(says) : fail(says);
  });

export const checkTests = (
  evidence: StepEvidence,
  minimum: number,
  paths: readonly string[],
): Promise<Judgement> =>
  judgeReport(evidence, paths, (text) => {
    const { passed, failed, skipped, format } = readTestCounts(text);
    const says = `${passed} passed, ${failed} failed, ${skipped} skipped (${format})`;
    if (failed > 0) return fail(says);
    return passed >= minimum ? pass(says) : fail(`${says}; at least ${minimum} must pass`);
  });
