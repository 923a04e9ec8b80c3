import { plural } from '../../../machines/plural.ts';
import type { TaskId } from '../../../machines/task.ts';
import { type SnapshotReads, savedSnapshot } from '../../journal/snapshots.ts';
import type { TaskView } from '../../journal/task-view.ts';
import type { Workspace } from '../../workspace/port.ts';
import type { PublishSettings } from '../attempts/settings.ts';

export interface WorkText {
  readonly title: string;
  readonly body: string;
}

export interface DescribePorts {
  readonly store: SnapshotReads;
  readonly workspace: Pick<Workspace, 'readProject'>;
  readonly settings: () => Pick<PublishSettings, 'link'>;
}

/** The template of a project, below its folder. */
const templatePath = '.agent/pull-request.md';
const templateBytesAtMost = 20_000;
const titleAtMost = 200;
const summaryAtMost = 15_000;
const bodyAtMost = 20_000;

const usualTemplate = `{{summary}}

- Task {{task_id}}, attempt {{attempt}} by the {{role}}
- {{changes}}
- Verified: {{verified}}
- Cost: {{cost}}

[How it was made]({{link}})

Closes {{issue}}`;

const placeholder = /\{\{ ?([a-z_]{1,20}) ?\}\}/g;

type Values = Readonly<Record<string, string>>;

/** Fills a template once: what a value says is not filled. A line whose values are all empty goes. */
const fill = (template: string, values: Values): string =>
  template
    .split('\n')
    .filter((line) => {
      const names = [...line.matchAll(placeholder)].flatMap(([, name = '']) => values[name] ?? []);
      return names.length === 0 || names.some((value) => value !== '');
    })
    .map((line) => line.replace(placeholder, (whole, name: string) => values[name] ?? whole))
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim();

const costOf = ({ usage, attempts = [] }: TaskView): number => {
  const all = attempts.reduce((sum, { cost_usd = 0 }) => sum + cost_usd, 0);
  return all > 0 ? all : (usage.cost_usd ?? 0);
};

/** The issue that a task was made of, as GitHub closes it. */
const issueOf = ({ source }: TaskView, repository: string): string => {
  if (source === undefined) return '';
  const isHere = source.url.toLowerCase().includes(`/${repository.toLowerCase()}/issues/`);
  return isHere ? `#${source.number}` : source.url;
};

const valuesOf = (
  task: TaskView,
  attempt: number,
  verified: readonly string[],
  link: string | null,
  repository: string,
): Values => {
  const { task_id, title, result = '', role = 'agent', work } = task;
  const cost = costOf(task);
  return {
    title,
    task_id,
    attempt: `${attempt}`,
    role,
    summary: result.trim().slice(0, summaryAtMost),
    changes:
      work === undefined
        ? ''
        : `${plural(work.files, 'file')}, +${work.insertions} −${work.deletions}`,
    verified: verified.map((command) => `\`${command}\``).join(', '),
    cost: cost > 0 ? `$${cost.toFixed(2)}` : '',
    issue: issueOf(task, repository),
    link: link === null ? '' : link.replaceAll('{task_id}', encodeURIComponent(task_id)),
  };
};

/** The first line of a template may be `title: …`. */
export const writeWorkText = (template: string | null, values: Values): WorkText => {
  const text = template ?? usualTemplate;
  const [, own, rest = text] = /^title:(.*)\n([\s\S]*)$/.exec(text) ?? [];
  return {
    title: fill(own ?? '{{title}}', values).slice(0, titleAtMost),
    body: fill(rest, values).slice(0, bodyAtMost),
  };
};

/**
 * The title and text of a pull request, by the template that the project's branch has: one that an
 * agent wrote counts when a person has merged it.
 */
export const describeWork = async (
  { store, workspace, settings }: DescribePorts,
  task: TaskView,
  attempt: number,
  repository: string,
): Promise<WorkText> => {
  const template = await workspace.readProject(null, (files) =>
    files.read(`${files.prefix}${templatePath}`, templateBytesAtMost),
  );
  const { options } = (await savedSnapshot(store, task.task_id as TaskId)).context;
  // An attempt is complete only when all of them passed.
  const verified = task.work?.tested?.commands ?? options?.verify ?? [];
  const text = template?.replaceAll('\r\n', '\n').trim() || null;
  return writeWorkText(text, valuesOf(task, attempt, verified, settings().link, repository));
};
