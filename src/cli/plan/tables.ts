import { z } from 'zod';
import { linesOfJson } from '../config/json-lines.ts';
import type { PlanItem, PlanProblem, ReadPlan } from './plan-item.ts';

const columns = ['title', 'description', 'priority', 'labels', 'role', 'depends_on'] as const;
type Column = (typeof columns)[number];

const ofTable = (items: readonly PlanItem[], problems: readonly PlanProblem[]): ReadPlan => ({
  items,
  problems,
  done: 0,
});

const only = (line: number, problem: string): ReadPlan => ofTable([], [{ line, problem }]);

const parts = (text: string, between: RegExp): readonly string[] =>
  text
    .split(between)
    .map((part) => part.trim())
    .filter((part) => part !== '');

const titleOf = (text: string): string => text.replace(/\s+/g, ' ').trim();

const headerProblem = (header: readonly string[]): string | null => {
  const unknown = header.filter((name) => !(columns as readonly string[]).includes(name));
  const twice = header.find((name, at) => header.indexOf(name) !== at);
  if (unknown.length > 0)
    return `unknown ${unknown.map((name) => JSON.stringify(name.slice(0, 50))).join(', ')}; the columns are: ${columns.join(', ')}`;
  if (twice !== undefined) return `the column ${twice} is there twice`;
  return header.includes('title') ? null : 'there is no column title';
};

/** Reads CSV with a header. Labels are separated by commas, what a task depends on by semicolons. */
export const readCsv = async (text: string): Promise<ReadPlan> => {
  const { CsvError, parse } = await import('csv-parse/sync');
  let rows: readonly { readonly record: readonly string[]; readonly line: number }[];
  try {
    const read = parse(text, {
      bom: true,
      info: true,
      skip_empty_lines: true,
      relax_column_count: true,
    }) as unknown as readonly { record: string[]; info: { lines: number } }[];
    // It tells the last line of a row.
    rows = read.map(({ record, info }) => ({
      record,
      line: info.lines - record.join('').split('\n').length + 1,
    }));
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    return only(Number(error['lines'] ?? 1), error.message);
  }
  const [first, ...others] = rows;
  const header = (first?.record ?? []).map((name) => name.trim().toLowerCase());
  const wrong = headerProblem(header);
  if (wrong !== null) return only(first?.line ?? 1, wrong);
  const problems: PlanProblem[] = [];
  const items = others.map(({ record, line }): PlanItem => {
    if (record.length !== header.length)
      problems.push({
        line,
        problem: `has ${record.length} columns, but the header has ${header.length}`,
      });
    const cell = (name: Column): string => record[header.indexOf(name)]?.trim() ?? '';
    const priority = cell('priority');
    const isNumber = /^[0-4]$/.test(priority);
    if (priority !== '' && !isNumber)
      problems.push({
        line,
        problem: `priority ${JSON.stringify(priority)} is no number from 0 to 4`,
      });
    return {
      line,
      path: [],
      title: titleOf(cell('title')),
      description: cell('description'),
      priority: isNumber ? Number(priority) : undefined,
      labels: parts(cell('labels'), /[,;]/),
      role: cell('role') || undefined,
      dependsOn: parts(cell('depends_on'), /;/),
    };
  });
  return ofTable(items, problems);
};

const expected = (what: string) => ({ error: `expected ${what}` });
const texts = z.array(z.string(expected('text')), expected('a list of texts')).optional();
const itemSchema = z.strictObject(
  {
    title: z.string(expected('text')),
    description: z.string(expected('text')).optional(),
    priority: z.int(expected('a number from 0 to 4')).min(0).max(4).optional(),
    labels: texts,
    role: z.string(expected('text')).optional(),
    depends_on: texts,
  },
  {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? `unknown ${issue.keys.map((key) => JSON.stringify(key.slice(0, 50))).join(', ')}; the fields are: ${columns.join(', ')}`
        : 'expected an object',
  },
);

/** Reads a JSON list of objects. */
export const readJson = (text: string): ReadPlan => {
  const { of, fault } = linesOfJson(text);
  if (fault !== null) return only(fault.line, fault.problem);
  const list: unknown = JSON.parse(text);
  if (!Array.isArray(list)) return only(1, 'expected a list of tasks: [{"title": "…"}]');
  const problems: PlanProblem[] = [];
  const items = list.flatMap((each: unknown, index): readonly PlanItem[] => {
    const line = of.get(JSON.stringify([index])) ?? 1;
    const parsed = itemSchema.safeParse(each);
    if (parsed.success) {
      const { title, description = '', priority, labels = [], role, depends_on = [] } = parsed.data;
      const dependsOn = depends_on.map(titleOf);
      return [
        { line, path: [], title: titleOf(title), description, priority, labels, role, dependsOn },
      ];
    }
    for (const { path, message } of parsed.error.issues)
      problems.push({
        line: of.get(JSON.stringify([index, ...path])) ?? line,
        problem: path.length === 0 ? message : `${path.join('.')}: ${message}`,
      });
    return [];
  });
  return ofTable(items, problems);
};
