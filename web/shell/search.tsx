import { effect, signal } from '@preact/signals';
import { tasks } from '../data/tasks.ts';
import { matches } from '../model/search.ts';
import { Icon } from '../parts/icon.tsx';
import { TaskLine } from '../parts/task-link.tsx';
import { go, route, taskPath } from './router.ts';

const words = signal('');
const shownAtMost = 12;

/** The results cover the page only while the search has the focus. */
const isOpen = signal(false);

const close = (): void => {
  words.value = '';
  isOpen.value = false;
};

const Found = () => {
  const found = [...tasks.value.values()].filter((task) => matches(task, words.value));
  return (
    <div class="search-found">
      {found.slice(0, shownAtMost).map(({ task_id }) => (
        <TaskLine key={task_id} id={task_id} />
      ))}
      <p class="quiet small">
        {found.length === 0
          ? `No task matches “${words.value}”.`
          : found.length > shownAtMost
            ? `${found.length - shownAtMost} more; type more to find them.`
            : 'Enter opens the first.'}
      </p>
    </div>
  );
};

/** @returns whether a task was found */
const openFirst = (): boolean => {
  const [first] = [...tasks.value.values()].filter((task) => matches(task, words.value));
  if (first !== undefined) go(taskPath(first.task_id));
  return first !== undefined;
};
effect(() => {
  if (route.value.taskId !== '') close();
});

export const Search = () => (
  <search
    class="search"
    onMouseDown={(event) => {
      // The focus stays: what is pressed must still be there on release.
      if (!(event.target instanceof HTMLInputElement)) event.preventDefault();
    }}
    onFocusIn={() => {
      isOpen.value = true;
    }}
    onFocusOut={({ currentTarget, relatedTarget }) => {
      isOpen.value = relatedTarget instanceof Node && currentTarget.contains(relatedTarget);
    }}
    onKeyDown={({ key, target }) => {
      if (key !== 'Escape') return;
      close();
      if (target instanceof HTMLElement) target.blur();
    }}
  >
    <Icon name="search" />
    <input
      type="search"
      aria-label="Search tasks"
      placeholder="Search tasks"
      value={words.value}
      onInput={({ currentTarget }) => {
        words.value = currentTarget.value;
      }}
      onKeyDown={({ key, currentTarget }) => {
        if (key !== 'Enter' || !openFirst()) return;
        currentTarget.blur();
      }}
    />
    <span class="search-key" aria-hidden="true">
      <kbd>/</kbd>
    </span>
    {isOpen.value && words.value.trim() !== '' && <Found />}
  </search>
);
