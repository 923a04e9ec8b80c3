/** Changes are drawn together, at most 20 times a second. */
const gatherMs = 50;
/** The timers of a page that nobody looks at are late by up to a minute. */
export const gatheredAtMost = 2_000;

/** Hands over together what comes within a short time, and sooner when it is much. */
export const createGather = <Item>(
  handOver: (items: readonly Item[]) => void,
): ((more: readonly Item[]) => void) => {
  let items: readonly Item[] = [];
  let timer: ReturnType<typeof setTimeout> | null = null;
  const flush = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    const all = items;
    items = [];
    handOver(all);
  };
  return (more) => {
    items = [...items, ...more];
    if (items.length >= gatheredAtMost) flush();
    else timer ??= setTimeout(flush, gatherMs);
  };
};
