import { readCoverage } from './coverage.ts';
import { fail, type Judgement, pass, type StepEvidence } from './evidence.ts';
import { reportMaxBytes } from './read-report.ts';
import { readTestCounts } from './test-counts.ts';
import { UnreadableReport } from './xml-tags.ts';

interface FoundReport {
  readonly path: string;
  readonly text: string;
}

/** Those that verify commands wrote; without such commands, the first in the attempt's diff. */
const findReports = async (
  { files, report, isVerified }: StepEvidence,
  paths: readonly string[],
): Promise<readonly FoundReport[]> => {
  const written: FoundReport[] = [];
  for (const path of paths) {
    const text = await report(path);
    if (text !== null) written.push({ path, text });
  }
  if (written.length > 0 || isVerified) return written;
  for (const path of paths) {
    if (files.changed?.includes(path) !== true) continue;
    const text = await files.read(path, reportMaxBytes);
    if (text !== null) return [{ path, text }];
  }
  return [];
};

const judgeOne = (
  taskId: string,
  { path, text }: FoundReport,
  read: (text: string) => Judgement,
): Judgement => {
  try {
    const { passed, says } = read(text);
    return { passed, says: `${says} (${path} of ${taskId})` };
  } catch (error) {
    if (!(error instanceof UnreadableReport)) throw error;
    return fail(`${path} of ${taskId} ${error.message}`);
  }
};

/** Each report that was found must pass, so that none hides another. */
const judgeReports = async (
  evidence: StepEvidence,
  paths: readonly string[],
  read: (text: string) => Judgement,
): Promise<Judgement> => {
  const { taskId, isVerified } = evidence;
  const found = await findReports(evidence, paths);
  const judged = found.map((each) => judgeOne(taskId, each, read));
  return (
    judged.find(({ passed }) => !passed) ??
    judged[0] ??
    fail(
      `found no report of ${taskId}; looked for ${paths.join(', ')}, ${isVerified ? 'written by its verify commands' : 'in its diff (no command of --verify ran; give one when you start a workflow)'}`,
    )
  );
};

export const checkCoverage = (
  evidence: StepEvidence,
  minimum: number,
  paths: readonly string[],
): Promise<Judgement> =>
  judgeReports(evidence, paths, (text) => {
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
  judgeReports(evidence, paths, (text) => {
    const { passed, failed, skipped, format } = readTestCounts(text);
    const says = `${passed} passed, ${failed} failed, ${skipped} skipped (${format})`;
    if (failed > 0) return fail(says);
    return passed >= minimum ? pass(says) : fail(`${says}; at least ${minimum} must pass`);
  });
