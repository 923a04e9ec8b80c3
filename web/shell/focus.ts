import { effect } from '@preact/signals';
import { tasks } from '../data/tasks.ts';

export const visible = (selector: string): readonly HTMLElement[] =>
  [...document.querySelectorAll<HTMLElement>(selector)].filter(
    (element) => element.offsetParent !== null,
  );

/** The stops of j and k in the order of the page. */
export const stops = (): readonly HTMLElement[] => visible('[data-stop]');

export const stopOf = (element: Element | null): HTMLElement | null =>
  element?.closest<HTMLElement>('[data-stop]') ?? null;

let focused: Element | null = null;
/** The latest stop that had the focus, or that held what had it. */
let lastStop: HTMLElement | null = null;
/** Its place among the others. */
let nth = 0;
let address = '';

const remember = ({ target }: FocusEvent): void => {
  focused = target instanceof Element ? target : null;
  if (address !== location.hash) lastStop = null;
  address = location.hash;
  const stop = stopOf(focused);
  if (stop === null) return;
  lastStop = stop;
  nth = stops().indexOf(stop);
};

/** The stop itself or the same one drawn anew; else what took its place, or what a task offers. */
const nextFocus = (): HTMLElement | undefined => {
  if (lastStop === null) return visible('main .task-actions :is(a, button)').at(-1);
  if (lastStop.isConnected) return lastStop;
  const all = stops();
  const same = all.find(({ dataset }) => dataset['stop'] === lastStop?.dataset['stop']);
  return same ?? all[Math.min(nth, all.length - 1)];
};

/** What had the focus is gone: the next best has it. */
const keepFocus = (): void => {
  if (focused === null || focused.isConnected || document.activeElement !== document.body) return;
  if (address === location.hash) nextFocus()?.focus();
};

const keepSoon = (): void => void requestAnimationFrame(() => setTimeout(keepFocus));

/** The focus stays in a list when the element that has it is removed. */
export const followFocus = (): void => {
  addEventListener('focusin', remember);
  for (const event of ['keyup', 'click']) addEventListener(event, keepSoon);
  effect(() => {
    if (tasks.value.size > 0) keepSoon();
  });
};
