import { plural } from '../../machines/plural.ts';
import type { Client, Result } from '../client/client.ts';
import type { CommandContext } from '../client/command-context.ts';
import { isYes } from '../output/ask.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { type Cell, renderTable } from '../output/render/table.ts';
import { oneLine } from '../output/safe-text.ts';
import { wrapAfter } from '../output/wrap.ts';
import { readPlan } from '../plan/read-plan.ts';
import { UsageError } from '../words/usage-error.ts';

type Imported = Result<'import'>;
type Item = Imported['items'][number];

const words = { make: 'make', change: 'change', same: 'is there', deleted: 'deleted' } as const;
const styles = { make: 'green', change: 'yellow', same: 'dim', deleted: 'dim' } as const;
const afterColumns = 24;

const rowOf = ({ action, name, task_id: id, depends_on: after, title }: Item): readonly Cell[] => [
  { text: words[action], style: styles[action] },
  { text: id ?? '-' },
  { text: oneLine(name, 12) },
  { text: oneLine(after.join(', ') || '-', afterColumns) },
  { text: oneLine(title, 200) },
];

const print = ({ io }: CommandContext, { items }: Imported): void => {
  const header = ['ACTION', 'TASK', 'FROM', 'AFTER', 'TITLE'];
  if (items.length > 0) io.out(renderTable(header, items.map(rowOf), io.width));
};

/** What is not as its source says, by name. */
const printNotes = ({ io }: CommandContext, { items }: Imported): void => {
  const titles = new Map(items.map(({ name, title }) => [name, title]));
  const named = (name: string): string => {
    const title = titles.get(name);
    return title === undefined ? name : `${name} "${oneLine(title, 40)}"`;
  };
  for (const { name, cycles, unknown } of items) {
    for (const cycle of cycles)
      io.err(
        wrapAfter(
          'note: ',
          `${named(name)}: a dependency is left out, since it would close the cycle ${cycle}`,
          io.width,
        ),
      );
    if (unknown.length > 0)
      io.err(
        wrapAfter(
          'note: ',
          `${named(name)} is blocked by ${unknown.slice(0, 10).map(shortRef).join(', ')}, which is no task here`,
          io.width,
        ),
      );
  }
};

/** `#12` for the page of an issue. */
const shortRef = (ref: string): string => ref.replace(/^https?:.*\/issues\//, '#');

const count = ({ items }: Imported, action: Item['action']): number =>
  items.filter((item) => item.action === action).length;

const summary = (imported: Imported, isDone: boolean): string => {
  const [made, changed, same] = (['make', 'change', 'same'] as const).map((action) =>
    count(imported, action),
  );
  const parts = [
    `${plural(made ?? 0, 'task')} ${isDone ? 'made' : 'to make'}`,
    ...(changed === 0 ? [] : [`${changed} ${isDone ? 'changed' : 'to change'}`]),
    ...(same === 0 ? [] : [`${same} there already`]),
  ];
  return parts.join(', ');
};

const codeOf = ({ problem }: Imported): number => {
  if (problem?.fault === 'right' || problem?.fault === 'token') return exitCodes.unauthorized;
  return problem?.needs === 'person' ? exitCodes.conflict : exitCodes.unavailable;
};

/** @returns false when nobody says yes. @throws UsageError when nobody can */
const isWanted = async (
  context: CommandContext,
  planned: Imported,
  yes: boolean,
): Promise<boolean> => {
  if (yes) return true;
  const { io, json } = context;
  if (json || io.ask === null)
    throw new UsageError(
      `nothing was made: there is no terminal to ask; ${summary(planned, false)}; give --yes to do it`,
    );
  const said = await io.ask('do it? [y/N] ');
  return said !== null && isYes(said);
};

/** Shows what would be done, asks, and does it. */
const importWith = async (
  context: CommandContext,
  yes: boolean,
  call: (dryRun: boolean) => Promise<Imported>,
): Promise<number> => {
  const { io, json } = context;
  const refused = (imported: Imported): number => {
    if (json) io.json(imported);
    else io.err(wrapAfter('agent: ', imported.problem?.message ?? '', io.width));
    return codeOf(imported);
  };
  const planned = await call(true);
  if (planned.problem !== undefined) return refused(planned);
  if (!json) {
    print(context, planned);
    printNotes(context, planned);
  }
  if (count(planned, 'make') + count(planned, 'change') === 0) {
    if (json) io.json(planned);
    else io.out(planned.items.length === 0 ? 'there is nothing to import' : 'nothing is new');
    return exitCodes.done;
  }
  if (!(await isWanted(context, planned, yes))) {
    io.out('nothing was made');
    return exitCodes.done;
  }
  const imported = await call(false);
  if (imported.problem !== undefined) return refused(imported);
  if (json) io.json(imported);
  else {
    for (const { action, task_id: id, title } of imported.items)
      if (action === 'make') io.out(`${id}  ${oneLine(title, (io.width ?? 100) - 12)}`);
    io.out(summary(imported, true));
  }
  return exitCodes.done;
};

export interface ImportIssuesArgs {
  readonly label: readonly string[] | undefined;
  readonly milestone: string | undefined;
  readonly yes: boolean;
}

/** Exit code 8 without the right to read issues, 4 when a person has to mend something else, 6 when the forge is away. */
export const importGitHub = async (
  context: CommandContext,
  { label = [], milestone, yes }: ImportIssuesArgs,
): Promise<number> => {
  const client = await context.connection.server();
  const labels = label.flatMap((each) => each.split(',')).filter((each) => each !== '');
  return importWith(context, yes, (dryRun) =>
    client.call('import_issues', {
      labels,
      dry_run: dryRun,
      milestone,
    }),
  );
};

/** @throws UsageError for a dependency on a task that does not exist */
const requireKnown = ({ items }: Imported, name: string): void => {
  const wrong = items.filter(({ unknown }) => unknown.length > 0);
  if (wrong.length === 0) return;
  const lines = wrong.map(
    ({ name: line, unknown }) =>
      `  ${name}:${line.replace('line ', '')}: depends on ${unknown.join(', ')}, which does not exist`,
  );
  throw new UsageError([`nothing was made:`, ...lines.slice(0, 20)].join('\n'));
};

export const importPlan = async (
  context: CommandContext,
  { file, yes }: { readonly file: string; readonly yes: boolean },
): Promise<number> => {
  const { name, tasks, done } = await readPlan(file);
  const client: Client = await context.connection.files();
  if (done > 0 && !context.json)
    context.io.err(`note: ${plural(done, 'checked item')} left out, as done`);
  return importWith(context, yes, async (dryRun) => {
    const items = tasks.map((task) => ({ ...task, labels: [...task.labels] }));
    const planned = await client.call('import', {
      dry_run: dryRun,
      items: items.map((item) => ({ ...item, depends_on: [...item.depends_on] })),
    });
    if (dryRun) requireKnown(planned, name);
    return planned;
  });
};
