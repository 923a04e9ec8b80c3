import { plural } from '../../../machines/plural.ts';
import type { TaskView } from '../../journal/task-view.ts';

const titleAtMost = 200;
const bodyAtMost = 20_000;

/** The title and text of a pull request: what changed, how it was verified, what it cost. */
export const describeWork = (
  { task_id, title, result = '', role, work, usage, attempts = [] }: TaskView,
  attempt: number,
): { readonly title: string; readonly body: string } => {
  const cost = attempts.reduce((sum, { cost_usd = 0 }) => sum + cost_usd, 0);
  const costs = cost > 0 ? cost : (usage.cost_usd ?? 0);
  const tested = work?.tested?.commands ?? [];
  const facts = [
    `Task ${task_id}, attempt ${attempt}${role === undefined ? '' : ` by the ${role}`}`,
    ...(work === undefined
      ? []
      : [`${plural(work.files, 'file')}, +${work.insertions} −${work.deletions}`]),
    ...(tested.length === 0 ? [] : [`Verified: ${tested.map((each) => `\`${each}\``).join(', ')}`]),
    ...(costs > 0 ? [`Cost: $${costs.toFixed(2)}`] : []),
  ];
  const body = [result.trim(), facts.map((fact) => `- ${fact}`).join('\n')];
  return {
    title: title.slice(0, titleAtMost),
    body: body
      .filter((part) => part !== '')
      .join('\n\n')
      .slice(0, bodyAtMost),
  };
};
