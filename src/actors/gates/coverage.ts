import { asObject, countOf, parseReportJson, requireReadable } from './read-report.ts';
import { UnreadableReport, xmlTags } from './xml-tags.ts';

export interface Coverage {
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
