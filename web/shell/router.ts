import { computed, signal } from '@preact/signals';

export type View =
  | 'needs-you'
  | 'board'
  | 'graph'
  | 'machines'
  | 'system'
  | 'task'
  | 'diff'
  | 'edit'
  | 'workflow'
  | 'new';

export interface Route {
  readonly view: View;
  /** For task, diff, edit and machines; for workflow its id. */
  readonly taskId: string;
}

const plain: ReadonlySet<string> = new Set([
  'needs-you',
  'board',
  'graph',
  'machines',
  'system',
  'new',
] satisfies View[]);
const ofTask: Readonly<Record<string, View>> = { '': 'task', diff: 'diff', edit: 'edit' };

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

const parse = (fragment: string): Route => {
  const [view = '', id = '', part = ''] =
    fragment.replace(/^#\/?/, '').split('?')[0]?.split('/') ?? [];
  if (view === 'task' && id !== '') return { view: ofTask[part] ?? 'task', taskId: decoded(id) };
  if (view === 'workflow' && id !== '') return { view, taskId: decoded(id) };
  if (view === 'machines') return { view, taskId: decoded(id) };
  return { view: plain.has(view) ? (view as View) : 'needs-you', taskId: '' };
};

const fragment = signal(location.hash);
export const route = computed(() => parse(fragment.value));

const read = (): void => {
  fragment.value = location.hash;
};
addEventListener('hashchange', read);

/** After a change of the address without an event. */
export const readAddress = read;

export const go = (path: string): void => {
  location.hash = path.replace(/^#/, '');
};

/** A browser ignores an address that changes more often. */
const addressRestsMs = 150;
let rest: ReturnType<typeof setTimeout> | null = null;

/** For a place that changes while somebody drags: the way back does not lead through each. */
export const slideTo = (path: string): void => {
  fragment.value = path;
  const before = location.hash;
  if (rest === null)
    rest = setTimeout(() => {
      rest = null;
      if (location.hash === before) history.replaceState(null, '', fragment.value);
    }, addressRestsMs);
};

/** `?at=4655`: the entry of the journal that is shown; null: the latest. */
export const atSeq = computed(() => {
  const at = Number(/[?&]at=(\d+)/.exec(fragment.value)?.[1]);
  return Number.isSafeInteger(at) ? at : null;
});

const at = (seq: number | null): string => (seq === null ? '' : `?at=${seq}`);

export const machinesPath = (id: string, seq: number | null = null): string =>
  `#/machines/${encodeURIComponent(id)}${at(seq)}`;
/** The task as it was at an entry. */
export const taskAtPath = (id: string, seq: number | null): string => `${taskPath(id)}${at(seq)}`;

export const workflowPath = (id: string): string => `#/workflow/${encodeURIComponent(id)}`;
export const pathOf = (view: View): string => `#/${view}`;
export const taskPath = (id: string, part: '' | 'diff' | 'edit' = ''): string =>
  `#/task/${encodeURIComponent(id)}${part === '' ? '' : `/${part}`}`;
