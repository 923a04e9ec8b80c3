import { ageText } from '../output/durations.ts';
import { costText } from '../output/money.ts';
import { attemptText } from '../output/next-steps.ts';
import { oneLine } from '../output/safe-text.ts';
import { type Styled, styled, type Text } from '../output/styled.ts';
import { cutToWidth, textWidth } from '../output/width.ts';
import { wrap } from '../output/wrap.ts';
import { sectionStyles, sections, sectionTitles } from './sections.ts';
import { type BoardTask, whyText } from './why.ts';

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
