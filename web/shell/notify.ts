import { effect, signal } from '@preact/signals';
import { isLoaded } from '../data/tasks.ts';
import { oneLine } from '../model/format.ts';
import { needed } from './needed.ts';
import { taskPath } from './router.ts';

const key = 'agent-task-server.notify';

/** True when this browser shows notifications; null where it cannot, as on a phone. */
export const notifies = signal<boolean | null>(
  typeof Notification === 'undefined' || matchMedia('(hover: none)').matches
    ? null
    : localStorage.getItem(key) === 'yes' && Notification.permission === 'granted',
);

/** Call it on a click: a browser may ask the person only then. @throws when the browser refuses */
export const setNotifies = async (wanted: boolean): Promise<void> => {
  if (wanted && (await Notification.requestPermission()) !== 'granted')
    throw new Error(
      'This browser does not allow notifications of this page. Allow them in its settings.',
    );
  localStorage.setItem(key, wanted ? 'yes' : 'no');
  notifies.value = wanted;
};

const show = (id: string, title: string): void => {
  const notification = new Notification('A task needs you', {
    body: oneLine(`${id}: ${title}`),
    tag: id,
  });
  notification.onclick = () => {
    window.focus();
    location.hash = taskPath(id);
    notification.close();
  };
};

/**
 * Notifies once of each task that begins to need somebody while nobody works in the page. A window
 * behind another one counts as visible in many browsers.
 */
export const followNeeds = (): (() => void) => {
  let known: ReadonlySet<string> | null = null;
  return effect(() => {
    if (!isLoaded.value) return;
    const found = needed.value;
    const before = known;
    known = new Set(found.map(({ task_id }) => task_id));
    if (before === null || notifies.peek() !== true || document.hasFocus()) return;
    for (const { task_id, title } of found) if (!before.has(task_id)) show(task_id, title);
  });
};
