import type { TaskView } from '../../src/actors/journal/task-view.ts';

/** A title has no more; a search takes a time of its own length times that of the titles. */
const wordsAtMost = 500;

/** By title, id, role or label. What follows the first 500 characters of the words does not count. */
export const matches = (task: TaskView, words: string): boolean => {
  const text = [task.title, task.task_id, task.role ?? '', ...task.labels].join(' ').toLowerCase();
  return words
    .slice(0, wordsAtMost)
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
};

/** By its whole title, else by a part of it. @returns the text when it names none @throws when several are */
export const idNamed = (text: string, tasks: ReadonlyMap<string, TaskView>): string => {
  const all = [...tasks.values()];
  const part = text.toLowerCase();
  const isId = tasks.has(text) || part === '' || part.length > wordsAtMost;
  const same = all.filter(({ title }) => title === text);
  const found =
    isId || same.length > 0 ? same : all.filter(({ title }) => title.toLowerCase().includes(part));
  if (found.length <= 1) return found[0]?.task_id ?? text;
  const shown = found.slice(0, 5).map(({ task_id }) => task_id);
  const more = found.length > shown.length ? ' …' : '';
  throw new Error(
    `${found.length} tasks have “${text}” in their title; write an id: ${shown.join(', ')}${more}`,
  );
};
