import type { TaskView } from '../../actors/journal/task-view.ts';
import type { Style } from '../output/styled.ts';
import { mergeWord } from '../words/state-words.ts';

/** In the order of the screen: what a person can do something about comes first. */
export const sections = ['need', 'working', 'review', 'slot', 'dependency', 'done'] as const;
export type BoardSection = (typeof sections)[number];

export const sectionTitles: Readonly<Record<BoardSection, string>> = {
  need: 'Needs you',
  working: 'Working',
  review: 'To review',
  slot: 'Queued',
  dependency: 'Blocked',
  done: 'Done',
};

export const sectionStyles: Readonly<Record<BoardSection, Style>> = {
  need: 'yellow',
  working: 'cyan',
  review: 'blue',
  slot: 'dim',
  dependency: 'dim',
  done: 'green',
};

/** `work`: the changes of the latest attempt, where they are known. */
export const sectionOf = (
  { status, phase, awaiting }: TaskView,
  work: TaskView['work'],
): BoardSection => {
  if (awaiting !== undefined || status === 'failed' || phase === 'waiting_for_person')
    return 'need';
  if (status === 'started') return 'working';
  if (status === 'complete') return mergeWord(work) === 'not merged' ? 'review' : 'done';
  if (status === 'cancelled') return 'done';
  return phase === 'waiting_for_dependencies' ? 'dependency' : 'slot';
};
