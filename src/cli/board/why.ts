import type { TaskView } from '../../actors/journal/task-view.ts';
import { plural } from '../../machines/plural.ts';
import type { TaskProgress } from '../graph/progress.ts';
import { mergeWord, phaseWord } from '../words/state-words.ts';
import { type BoardSection, sectionTitles } from './sections.ts';

export interface BoardTask {
  readonly task: TaskProgress;
  readonly section: BoardSection;
  readonly work: TaskView['work'];
}

const boardBlockersAtMost = 2;

/** A cancelled task is among those that are done, but nothing goes on behind it. */
const placeWord = ({ task: { view }, section }: BoardTask): string =>
  view.status === 'cancelled' ? view.status : sectionTitles[section].toLowerCase();

const dependenciesText = (
  { unmet_dependencies: unmet }: TaskView,
  find: (taskId: string) => BoardTask | null,
): string => {
  const named = unmet.slice(0, boardBlockersAtMost).map((id) => {
    const found = find(id);
    return found === null ? id : `${id} (${placeWord(found)})`;
  });
  const rest = unmet.length - named.length;
  return `waits for ${[...named, ...(rest === 0 ? [] : [`${rest} more`])].join(' and ')}`;
};

const askingText = ({ kind, question, calls }: NonNullable<TaskView['awaiting']>): string =>
  kind === 'input'
    ? `asks: ${question}`
    : `asks permission: ${calls.map((call) => `${call.tool} ${call.arguments}`).join(', ')}`;

const changeSummary = ({ files, insertions, deletions }: NonNullable<TaskView['work']>): string =>
  `${plural(files, 'file')}, +${insertions} -${deletions}`;

const overText = ({ task: { view }, work }: BoardTask): string | null => {
  if (view.status === 'failed') return view.error?.message ?? 'failed';
  if (view.status === 'cancelled') return 'cancelled';
  if (view.status !== 'complete') return null;
  const merge = mergeWord(work);
  return work === undefined || merge === null
    ? (view.result ?? 'complete')
    : `${merge}: ${changeSummary(work)}`;
};

/** One sentence: why a task is where it is. */
export const whyText = (shown: BoardTask, find: (taskId: string) => BoardTask | null): string => {
  const { view, words } = shown.task;
  if (view.awaiting !== undefined) return askingText(view.awaiting);
  const over = overText(shown);
  if (over !== null) return over;
  if (view.phase === 'waiting_for_dependencies') return dependenciesText(view, find);
  if (view.phase === 'waiting_for_person') return 'waits for you to close it';
  const phase = phaseWord(view.phase);
  if (view.error !== undefined) return `${phase}: ${view.error.message}`;
  const said = words === '' ? (view.activity ?? '') : words;
  return view.status === 'started' && said !== '' ? `${phase}: ${said}` : phase;
};
