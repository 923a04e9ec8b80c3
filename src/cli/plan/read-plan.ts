import { readFileSync } from 'node:fs';
import { basename, extname } from 'node:path';
import { plural } from '../../machines/plural.ts';
import { fileProblem } from '../output/file-problem.ts';
import { oneLine } from '../output/safe-text.ts';
import { UsageError } from '../words/usage-error.ts';
import { readChecklist } from './checklist.ts';
import { type PlannedTask, type ReadPlan, tasksOf } from './plan-item.ts';

const bytesAtMost = 512 * 1024;
const problemsAtMost = 20;

const readText = (file: string): string => {
  const name = file === '-' ? 'standard input' : file;
  let bytes: Buffer;
  try {
    bytes = readFileSync(file === '-' ? 0 : file);
  } catch (error) {
    throw new UsageError(`${name} cannot be read: ${fileProblem(error)}`);
  }
  if (bytes.length > bytesAtMost)
    throw new UsageError(`${name} has more than ${bytesAtMost / 1024} KiB: split it`);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new UsageError(`${name} is no text in UTF-8`);
  }
};

type Format = 'checklist' | 'csv' | 'json';
const formats: Readonly<Record<string, Format>> = {
  '.md': 'checklist',
  '.markdown': 'checklist',
  '.csv': 'csv',
  '.json': 'json',
};

/** By its name, else by how it begins. */
const formatOf = (file: string, text: string): Format => {
  const named = file === '-' ? undefined : formats[extname(file).toLowerCase()];
  if (named !== undefined) return named;
  if (/^\s*\[\s*[{\]]/.test(text.slice(0, 10_000))) return 'json';
  const [first = ''] = text.slice(0, 10_000).split('\n', 1);
  const names = first.split(',').map((name) => name.replaceAll('"', '').trim().toLowerCase());
  return names.includes('title') ? 'csv' : 'checklist';
};

const read = async (format: Format, text: string): Promise<ReadPlan> => {
  if (format === 'checklist') return readChecklist(text);
  const { readCsv, readJson } = await import('./tables.ts');
  return format === 'csv' ? readCsv(text) : readJson(text);
};

export interface Plan {
  /** For people. */
  readonly name: string;
  readonly tasks: readonly PlannedTask[];
  readonly done: number;
}

/** Reads the tasks that a file plans; `-` is standard input. @throws UsageError with each line that is wrong */
export const readPlan = async (file: string): Promise<Plan> => {
  const text = readText(file);
  const name = file === '-' ? 'standard input' : file;
  const format = formatOf(file, text);
  const plan = await read(format, text);
  const { tasks, problems } = tasksOf(file === '-' ? '-' : basename(file), plan);
  if (problems.length > 0) {
    const lines = problems
      .slice(0, problemsAtMost)
      .map(({ line, problem }) => `  ${name}:${line}: ${oneLine(problem, 300)}`);
    const more = problems.length - lines.length;
    throw new UsageError(
      [
        `nothing was made; the file has ${plural(problems.length, 'problem')}:`,
        ...lines,
        ...(more > 0 ? [`  and ${more} more`] : []),
      ].join('\n'),
    );
  }
  if (tasks.length === 0 && plan.done === 0)
    throw new UsageError(
      format === 'checklist'
        ? `${name} has no checklist: write each task as - [ ] what to do`
        : `${name} has no tasks`,
    );
  return { name, tasks, done: plan.done };
};
