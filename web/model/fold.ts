/**
 * Folds a list that grows at its end: what was read once is not read again. It begins anew when the
 * beginning of the list has changed or its end is missing.
 */
export const createFold = <Item, State>(
  start: () => State,
  step: (state: State, item: Item) => void,
): ((items: readonly Item[]) => State) => {
  let state = start();
  let first: Item | undefined;
  let count = 0;
  return (items) => {
    if (items[0] !== first || items.length < count) {
      state = start();
      [first] = items;
      count = 0;
    }
    for (const item of items.slice(count)) step(state, item);
    count = items.length;
    return state;
  };
};
