import { signal } from '@preact/signals';
import { isRecorded } from '../data/source.ts';
import { followFocus, stopOf, stops, visible } from './focus.ts';
import { go, pathOf, route } from './router.ts';

export const isHelpOpen = signal(false);

const views: Readonly<Record<string, string>> = {
  n: pathOf('needs-you'),
  b: pathOf('board'),
  g: pathOf('graph'),
  m: pathOf('machines'),
  s: pathOf('system'),
};

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || target.matches('input:not([type="checkbox"]), textarea, select'));

const stopNow = (): HTMLElement | null => stopOf(document.activeElement);

const move = (by: 1 | -1): void => {
  const all = stops();
  const current = stopNow();
  const at = current === null ? (by === 1 ? -1 : all.length) : all.indexOf(current);
  const next = all[Math.min(all.length - 1, Math.max(0, at + by))];
  next?.focus();
  next?.scrollIntoView({ block: 'nearest' });
};

/** The nearest stop of the column beside. */
const moveAside = (by: 1 | -1): void => {
  const from = stopNow()?.getBoundingClientRect();
  if (from === undefined) return;
  const distance = ({ x, y }: DOMRect): number => Math.abs(x - from.x) * 4 + Math.abs(y - from.y);
  const [nearest] = stops()
    .map((stop) => ({ stop, box: stop.getBoundingClientRect() }))
    .filter(({ box }) => (by === 1 ? box.x > from.x + 20 : box.x < from.x - 20))
    .sort((one, other) => distance(one.box) - distance(other.box));
  nearest?.stop.focus();
};

const open = (): boolean => {
  const current = stopNow();
  if (current === null || current !== document.activeElement || current.matches('a, button'))
    return false;
  current.querySelector<HTMLAnchorElement>('a[href]')?.click();
  return true;
};

/** The button with this key in the focused row, or on a page without rows. */
const pressButton = (key: string): boolean => {
  const current = stopNow();
  const inRow = current?.querySelector<HTMLElement>(`[data-key="${key}"]`);
  const anywhere = visible(`[data-key="${key}"]`).filter(
    (button) => button.closest('[data-stop]') === null,
  );
  const button = inRow ?? anywhere[0];
  button?.click();
  return button !== undefined && button !== null;
};

const close = (): void => {
  if (isHelpOpen.value) isHelpOpen.value = false;
  else if (['task', 'diff', 'edit', 'new'].includes(route.value.view)) history.back();
};

let isAfterG = false;

const commands: Readonly<Record<string, () => void>> = {
  '?': () => {
    isHelpOpen.value = !isHelpOpen.value;
  },
  '/': () => visible('input[type="search"]')[0]?.focus(),
  c: () => go(pathOf('new')),
  j: () => move(1),
  k: () => move(-1),
  l: () => moveAside(1),
  h: () => moveAside(-1),
  i: () => stopNow()?.querySelector<HTMLElement>('textarea, input')?.focus(),
  Escape: close,
};

const onKey = (event: KeyboardEvent): void => {
  const { key, target } = event;
  if (isTyping(target)) {
    if (key === 'Escape' && target instanceof HTMLElement) target.blur();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (isRecorded()) {
    if (pressButton(key)) event.preventDefault();
    return;
  }
  const view = isAfterG ? views[key] : undefined;
  isAfterG = key === 'g' && !isAfterG;
  if (view !== undefined) {
    event.preventDefault();
    go(view);
    return;
  }
  const command = commands[key];
  if (key === 'Enter' ? open() : command !== undefined || pressButton(key)) event.preventDefault();
  command?.();
};

export const listenToKeys = (): void => {
  addEventListener('keydown', onKey);
  followFocus();
};
