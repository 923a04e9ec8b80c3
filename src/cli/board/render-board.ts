import type { TaskView } from '../../actors/journal/task-view.ts';
import { plural } from '../../machines/plural.ts';
import type { TaskProgress } from '../graph/progress.ts';
import { costText } from '../output/money.ts';
import { attemptText } from '../output/next-steps.ts';
import { oneLine } from '../output/safe-text.ts';
import { type Style, type Styled, styled, type Text } from '../output/styled.ts';
import { ageText } from '../output/times.ts';
import { cutToWidth, textWidth, wrap } from '../output/wrap.ts';
import { mergeWord, phaseWord, pullRequestName, pullRequestOf } from '../words/state-words.ts';

/** In the order of the screen: what a person can do something about comes first. */
export const sections = [
  'need',
  'working',
  'review',
  'forge',
  'slot',
  'dependency',
  'done',
] as const;
type BoardSection = (typeof sections)[number];

const sectionTitles: Readonly<Record<BoardSection, string>> = {
  need: 'Needs you',
  working: 'Working',
  review: 'To review',
  forge: 'In review',
  slot: 'Queued',
  dependency: 'Blocked',
  done: 'Done',
};

const sectionStyles: Readonly<Record<BoardSection, Style>> = {
  need: 'yellow',
  working: 'cyan',
  review: 'blue',
  forge: 'blue',
  slot: 'dim',
  dependency: 'dim',
  done: 'green',
};

/** `work`: the changes of the latest attempt, where they are known. */
export const sectionOf = (
  { status, phase, awaiting, pull_request }: TaskView,
  work: TaskView['work'],
): BoardSection => {
  const atForge = pullRequestOf({ status, work, pull_request });
  if (atForge !== null) return atForge.waits_for === 'person' ? 'need' : 'forge';
  if (status === 'complete' && pull_request?.state === 'merged') return 'done';
  if (awaiting !== undefined || status === 'failed' || phase === 'waiting_for_person')
    return 'need';
  if (status === 'started') return 'working';
  if (status === 'complete') return mergeWord(work) === 'not merged' ? 'review' : 'done';
  if (status === 'cancelled') return 'done';
  return phase === 'waiting_for_dependencies' ? 'dependency' : 'slot';
};

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
  const { pull_request } = view;
  const atForge = pullRequestOf({ ...view, work });
  if (atForge !== null) return `${pullRequestName(atForge)}: ${atForge.reason ?? atForge.state}`;
  if (pull_request?.state === 'merged') return `merged at the forge, #${pull_request.number}`;
  const merge = mergeWord(work);
  return work === undefined || merge === null
    ? (view.result ?? 'complete')
    : `${merge}: ${changeSummary(work)}`;
};

/** One sentence: why a task is where it is. */
const whyText = (shown: BoardTask, find: (taskId: string) => BoardTask | null): string => {
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

export interface Board {
  /** In the order of the screen. */
  readonly tasks: readonly BoardTask[];
  readonly find: (taskId: string) => BoardTask | null;
  /** Tasks that were not read, since there are too many. */
  readonly unread: number;
}

export interface BoardSize {
  readonly columns: number;
  readonly rows: number;
}

const silentMs = 60_000;
const longestId = 24;
const longestText = 400;

const boardFacts = ({ task: { view, turn } }: BoardTask): readonly string[] => {
  const cost = costText(view.usage.cost_usd);
  return [
    ...(view.role === undefined ? [] : [view.role]),
    ...(view.attempt === 0 ? [] : [`attempt ${attemptText(view)}`]),
    ...(turn === null || view.status !== 'started' ? [] : [`turn ${turn}`]),
    ...(cost === undefined ? [] : [cost]),
  ];
};

interface RowPlace {
  readonly now: number;
  readonly columns: number;
  readonly isChosen: boolean;
}

/** Two lines: which task, and why it is where it is. */
const taskLines = (board: Board, shown: BoardTask, place: RowPlace): readonly Text[] => {
  const { view, seenAt } = shown.task;
  const { now, columns, isChosen } = place;
  const id = cutToWidth(oneLine(view.task_id), Math.min(longestId, columns - 8));
  const isSilent = shown.section === 'working' && now - seenAt > silentMs;
  const age = ageText(now - seenAt).padStart(4);
  const used = 2 + textWidth(id) + 2 + textWidth(age) + 2;
  const title = cutToWidth(oneLine(view.title, longestText), columns - used);
  const why = oneLine([...boardFacts(shown), whyText(shown, board.find)].join(' · '), longestText);
  const mark = isChosen ? '> ' : '  ';
  const idPart: string | Styled = isChosen ? styled('bold', id) : id;
  return [
    [mark, idPart, '  ', isSilent ? styled('yellow', age) : age, '  ', title],
    ['    ', styled('dim', cutToWidth(why, columns - 4))],
  ];
};

const countsText = (board: Board): string =>
  sections
    .flatMap((section) => {
      const count = board.tasks.filter((task) => task.section === section).length;
      return count === 0 ? [] : [`${sectionTitles[section]} ${count}`];
    })
    .join(' · ');

interface BoardLine {
  readonly text: () => readonly Text[];
  readonly height: number;
  readonly taskId: string | null;
}

const boardLines = (
  board: Board,
  chosen: string | null,
  place: Omit<RowPlace, 'isChosen'>,
): readonly BoardLine[] =>
  sections.flatMap((section) => {
    const tasks = board.tasks.filter((task) => task.section === section);
    if (tasks.length === 0) return [];
    const title = styled(sectionStyles[section], `${sectionTitles[section]} ${tasks.length}`);
    return [
      { text: () => [[title]], height: 1, taskId: null },
      ...tasks.map((task) => ({
        text: () =>
          taskLines(board, task, { ...place, isChosen: task.task.view.task_id === chosen }),
        height: 2,
        taskId: task.task.view.task_id,
      })),
    ];
  });

/** The part of the lines around the chosen task that fits. */
const windowOf = (lines: readonly BoardLine[], chosen: string | null, rows: number) => {
  const at = Math.max(
    0,
    lines.findIndex(({ taskId }) => taskId !== null && taskId === chosen),
  );
  let [first, end, used] = [at, at + 1, lines[at]?.height ?? 0];
  const fits = (line: BoardLine | undefined): line is BoardLine =>
    line !== undefined && used + line.height <= rows;
  // Upwards to the middle of the screen, then down, then up with what is left.
  for (let line = lines[first - 1]; fits(line) && used < rows / 2; line = lines[first - 1]) {
    first -= 1;
    used += line.height;
  }
  for (let line = lines[end]; fits(line); line = lines[end]) {
    end += 1;
    used += line.height;
  }
  for (let line = lines[first - 1]; fits(line); line = lines[first - 1]) {
    first -= 1;
    used += line.height;
  }
  return { first, end };
};

const tasksInSection = (lines: readonly BoardLine[]): number =>
  lines.filter(({ taskId }) => taskId !== null).length;

const emptyText = 'No tasks yet. Create one with: agent create "what to do"';

/** The screen; `chosen` is the id of the task under the cursor. */
export const renderBoard = (
  board: Board,
  chosen: string | null,
  now: number,
  { columns, rows }: BoardSize,
): readonly Text[] => {
  const lines = boardLines(board, chosen, { now, columns });
  const counts =
    lines.length === 0 ? [] : wrap(countsText(board), columns).slice(0, Math.max(0, rows - 3));
  const { first, end } = windowOf(lines, chosen, Math.max(1, rows - 1 - counts.length));
  const above = tasksInSection(lines.slice(0, first));
  const below = tasksInSection(lines.slice(end)) + board.unread;
  const rest = above + below === 0 ? '' : `${above} above, ${below} below · `;
  const foot = `${rest}j/k move · Enter show · ? help · q quit`;
  return [
    ...counts.map((line) => [styled('bold', line)]),
    ...(lines.length === 0
      ? [cutToWidth(emptyText, columns)]
      : lines.slice(first, end).flatMap(({ text }) => text())),
    [styled('dim', cutToWidth(foot, columns))],
  ];
};
