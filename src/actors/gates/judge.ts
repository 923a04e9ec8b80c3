import type { WorkflowCheck } from '../../machines/workflow/workflow-definition.ts';
import { runInThread, serveThread, ThreadLimit } from '../process/run-in-thread.ts';
import type { WorkFiles } from '../workspace/port.ts';
import { checkVerdict, fail, type Judgement, pass, type StepEvidence } from './evidence.ts';
import {
  asObject,
  countOf,
  parseReportJson,
  reportMaxBytes,
  requireReadable,
  UnreadableReport,
  xmlTags,
} from './read-report.ts';
import { checkAnswers, checkFindings, checkNextSteps, checkSections } from './research.ts';
import { readTestCounts } from './test-counts.ts';

interface Coverage {
  readonly covered: number;
  readonly total: number;
  /** The unit of both numbers. */
  readonly unit: 'lines' | 'statements';
  /** `istanbul`, `lcov`, `cobertura`, `go` or `pytest`. */
  readonly format: string;
}

const checked = (coverage: Coverage): Coverage => {
  const { covered, total, unit } = coverage;
  if (total === 0) throw new UnreadableReport(`counts no ${unit}`);
  if (covered > total)
    throw new UnreadableReport(`says that ${covered} of ${total} ${unit} are covered`);
  return coverage;
};

/** `coverage-summary.json` of istanbul and c8. */
const coverageOfSummary = (total: Readonly<Record<string, unknown>>): Coverage => {
  const lines = asObject(total['lines']);
  if (lines === null) throw new UnreadableReport('has no total.lines');
  return {
    covered: countOf(lines['covered'], 'total.lines.covered'),
    total: countOf(lines['total'], 'total.lines.total'),
    unit: 'lines',
    format: 'istanbul',
  };
};

/** `coverage.json` of coverage.py. */
const coverageOfPytest = (totals: Readonly<Record<string, unknown>>): Coverage => ({
  covered: countOf(totals['covered_lines'], 'totals.covered_lines'),
  total: countOf(totals['num_statements'], 'totals.num_statements'),
  unit: 'lines',
  format: 'pytest',
});

/** `coverage-final.json` of istanbul and c8: hits of each statement of each file. */
const coverageOfFinal = (files: Readonly<Record<string, unknown>>): Coverage => {
  const hits = Object.entries(files).flatMap(([file, value]) => {
    const statements = asObject(asObject(value)?.['s']);
    if (statements === null)
      throw new UnreadableReport(`has no statements of ${JSON.stringify(file.slice(0, 100))}`);
    return Object.values(statements).map((count) => countOf(count, 's'));
  });
  return {
    covered: hits.filter((count) => count > 0).length,
    total: hits.length,
    unit: 'statements',
    format: 'istanbul',
  };
};

const coverageOfJson = (text: string): Coverage => {
  const report = asObject(parseReportJson(text));
  if (report === null) throw new UnreadableReport('is no coverage report');
  const total = asObject(report['total']);
  const totals = asObject(report['totals']);
  if (total !== null) return coverageOfSummary(total);
  return totals === null ? coverageOfFinal(report) : coverageOfPytest(totals);
};

const coverageOfLcov = (text: string): Coverage => {
  const lines = new Map<string, Map<number, number>>();
  let file = '';
  for (const line of text.split('\n')) {
    if (line.startsWith('SF:')) file = line.slice(3).trim();
    const [, number, count] = /^DA:(\d{1,9}),(\d{1,15})/.exec(line) ?? [];
    if (number === undefined) continue;
    const own = lines.get(file) ?? new Map<number, number>();
    own.set(Number(number), Math.max(own.get(Number(number)) ?? 0, Number(count)));
    lines.set(file, own);
  }
  const counts = [...lines.values()].flatMap((own) => [...own.values()]);
  return {
    covered: counts.filter((count) => count > 0).length,
    total: counts.length,
    unit: 'lines',
    format: 'lcov',
  };
};

/** The lines of each class; those of its methods are among them. */
const fromCobertura = (text: string): Coverage => {
  const lines = new Map<string, boolean>();
  let file: string | null = null;
  let isRoot = true;
  let inMethods = 0;
  for (const { name, kind, attributes } of xmlTags(text)) {
    if (isRoot && name !== 'coverage')
      throw new UnreadableReport(`is no coverage report: it begins with <${name}>`);
    isRoot = false;
    if (name === 'class' && kind === 'open') file = attributes['filename'] ?? '';
    if (name === 'methods' && kind !== 'empty') inMethods += kind === 'open' ? 1 : -1;
    if (name !== 'line' || kind === 'close' || file === null || inMethods > 0) continue;
    const key = `${file}:${countOf(attributes['number'], 'number of a line')}`;
    const isHit = countOf(attributes['hits'], 'hits of a line') > 0;
    lines.set(key, isHit || lines.get(key) === true);
  }
  const covered = [...lines.values()].filter(Boolean).length;
  return { covered, total: lines.size, unit: 'lines', format: 'cobertura' };
};

const goLine = /^(\S.*:\d+\.\d+,\d+\.\d+) (\d{1,9}) (\d{1,15})$/;

const coverageOfGo = (text: string): Coverage => {
  const blocks = new Map<string, { readonly size: number; readonly isHit: boolean }>();
  for (const line of text.split(/\r?\n/).slice(1)) {
    if (line.trim() === '') continue;
    const [, place, size, count] = goLine.exec(line) ?? [];
    if (place === undefined) throw new UnreadableReport('is a broken profile of go');
    const isHit = Number(count) > 0 || blocks.get(place)?.isHit === true;
    blocks.set(place, { size: Number(size), isHit });
  }
  const all = [...blocks.values()];
  const sum = (some: typeof all): number => some.reduce((total, { size }) => total + size, 0);
  return {
    covered: sum(all.filter(({ isHit }) => isHit)),
    total: sum(all),
    unit: 'statements',
    format: 'go',
  };
};

/** Reads a report of a coverage tool, known by its content. @throws UnreadableReport */
export const readCoverage = (report: string): Coverage => {
  const text = requireReadable(report).trimStart();
  if (text.startsWith('{')) return checked(coverageOfJson(text));
  if (text.startsWith('<')) return checked(fromCobertura(text));
  if (/^mode: (set|count|atomic)\r?\n/.test(text)) return checked(coverageOfGo(text));
  if (/^(TN:|SF:)/m.test(text.slice(0, 10_000))) return checked(coverageOfLcov(text));
  throw new UnreadableReport('is no coverage report of istanbul, lcov, cobertura, go or pytest');
};

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

const fileMaxBytes = 16 * 1024 * 1024;

const artifactProblem = async (files: WorkFiles, path: string): Promise<string | null> => {
  const found = await files.list(path);
  if (found.length === 0) return `${path} is missing`;
  const changed = files.changed;
  if (changed === null) return `${path} cannot be checked: the attempt has no diff`;
  const own = found.filter((file) => changed.includes(file));
  if (own.length === 0) return `${path} is there, but not in the diff`;
  for (const file of own) {
    const text = await files.read(file, fileMaxBytes);
    if (text === null || text.trim() !== '') return null;
  }
  return `${path} is empty`;
};

/** Everything that a step must leave exists, is not empty, and is in the diff of its task. */
export const checkArtifacts = async ({
  leaves,
  files,
  taskId,
}: StepEvidence): Promise<Judgement> => {
  if (leaves.length === 0) return pass('has nothing to leave');
  const problems: string[] = [];
  for (const path of leaves) {
    const problem = await artifactProblem(files, path);
    if (problem !== null) problems.push(problem);
  }
  return problems.length === 0
    ? pass(`${leaves.join(', ')} in the diff of ${taskId}`)
    : fail(`${problems.join('; ')} (looked in the diff of ${taskId})`);
};

/** The diff has no path outside the allowed folders and files. */
export const checkOnlyChanges = (
  { files, taskId }: StepEvidence,
  allowed: readonly string[],
): Judgement => {
  const { changed } = files;
  if (changed === null)
    return fail(`${taskId} has no diff: its agent worked in the project's own folder`);
  const others = changed.filter(
    (path) => !allowed.some((each) => (each.endsWith('/') ? path.startsWith(each) : path === each)),
  );
  const shown = others.slice(0, 10).join(', ') + (others.length > 10 ? ', …' : '');
  return others.length === 0
    ? pass(`the diff of ${taskId} changes only ${allowed.join(', ')}`)
    : fail(`the diff of ${taskId} changes ${shown}; allowed is ${allowed.join(', ')}`);
};

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
