/**
 * A mouse that rests on an element shows its `title`. The same is shown on a focus by key, on a long
 * press, and on a press of what cannot be pressed now.
 */
const holdMs = 500;
const gap = 6;

const bubble = document.createElement('div');
bubble.className = 'hint';
bubble.setAttribute('role', 'tooltip');

const hintOf = (element: Element | null): string =>
  element?.getAttribute('title') ?? element?.querySelector(':scope > title')?.textContent ?? '';

/** What a pointer is on: an element with a hint, or a shape of a drawing that has one. */
const holderOf = (target: EventTarget | null): Element | null =>
  target instanceof Element ? target.closest('[title], svg :has(> title)') : null;

const hide = (): void => bubble.remove();

const show = (holder: Element | null): void => {
  const text = hintOf(holder);
  if (holder === null || text === '') return;
  bubble.textContent = text;
  document.body.append(bubble);
  const { left, top, bottom } = holder.getBoundingClientRect();
  const { width, height } = bubble.getBoundingClientRect();
  const below = bottom + gap + height < innerHeight;
  bubble.style.left = `${Math.max(gap, Math.min(left, innerWidth - width - gap))}px`;
  bubble.style.top = `${below ? bottom + gap : Math.max(gap, top - gap - height)}px`;
};

let timer: ReturnType<typeof setTimeout> | null = null;
let isTouch = false;
/** The press showed a hint, so it does nothing else. */
let isHeld = false;

const stopHolding = (): void => {
  if (timer !== null) clearTimeout(timer);
  timer = null;
};

const onDown = ({ target, pointerType }: PointerEvent): void => {
  hide();
  stopHolding();
  isHeld = false;
  isTouch = pointerType === 'touch';
  if (!isTouch) return;
  timer = setTimeout(() => {
    show(holderOf(target));
    isHeld = bubble.isConnected;
  }, holdMs);
};

const onClick = (event: MouseEvent): void => {
  const holder = holderOf(event.target);
  if (isHeld) {
    event.preventDefault();
    event.stopPropagation();
    isHeld = false;
  } else if (
    holder?.getAttribute('aria-disabled') === 'true' ||
    (isTouch && holder instanceof SVGElement)
  )
    show(holder);
};

/** For a focus by key. */
const showFocused = (): void => {
  const at = document.activeElement;
  if (at?.matches('[title]:focus-visible') === true) show(at);
  else hide();
};

export const showHints = (): void => {
  addEventListener('pointerdown', onDown);
  for (const end of ['pointerup', 'pointercancel']) addEventListener(end, stopHolding);
  addEventListener('click', onClick, true);
  addEventListener('focusin', showFocused);
  addEventListener('focusout', hide);
  // A focus may scroll to its element.
  addEventListener('scroll', () => bubble.isConnected && showFocused(), true);
  addEventListener(
    'keydown',
    (event) => {
      if (event.key !== 'Escape' || !bubble.isConnected) return;
      event.stopPropagation();
      hide();
    },
    true,
  );
};
