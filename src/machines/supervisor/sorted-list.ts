/** Items in order. A change makes another list, which shares nearly all of its parts. */
export interface SortedList<Item> {
  readonly parts: readonly (readonly Item[])[];
  readonly length: number;
}

/** Never 0 for two items of one list. */
export type Compare<Item> = (one: Item, other: Item) => number;

export const emptyList = { parts: [], length: 0 } as const;

const mostInPart = 512;

/** The first index from which on all items fit. */
const firstThat = <Item>(items: readonly Item[], fits: (item: Item) => boolean): number => {
  let [from, to] = [0, items.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (fits(items[middle] as Item)) to = middle;
    else from = middle + 1;
  }
  return from;
};

const placeOf = <Item>({ parts }: SortedList<Item>, item: Item, compare: Compare<Item>) => {
  const isNotBefore = (each: Item): boolean => compare(each, item) >= 0;
  const part = firstThat(parts, (items) => isNotBefore(items.at(-1) as Item));
  return { part, at: firstThat(parts[part] ?? [], isNotBefore) };
};

export const findItem = <Item>(
  list: SortedList<Item>,
  like: Item,
  compare: Compare<Item>,
): Item | undefined => {
  const { part, at } = placeOf(list, like, compare);
  const found = list.parts[part]?.[at];
  return found !== undefined && compare(found, like) === 0 ? found : undefined;
};

export const withItem = <Item>(
  list: SortedList<Item>,
  item: Item,
  compare: Compare<Item>,
): SortedList<Item> => {
  const { part, at } = placeOf(list, item, compare);
  const isLast = part > 0 && part === list.parts.length;
  const [index, items = []] = isLast ? [part - 1, list.parts.at(-1)] : [part, list.parts[part]];
  const next = items.toSpliced(isLast ? items.length : at, 0, item);
  const half = next.length >> 1;
  const parts = next.length > mostInPart ? [next.slice(0, half), next.slice(half)] : [next];
  return { parts: list.parts.toSpliced(index, 1, ...parts), length: list.length + 1 };
};

/** The item is in the list. */
export const withoutItem = <Item>(
  list: SortedList<Item>,
  item: Item,
  compare: Compare<Item>,
): SortedList<Item> => {
  const { part, at } = placeOf(list, item, compare);
  const left = (list.parts[part] ?? []).toSpliced(at, 1);
  const parts = list.parts.toSpliced(part, 1, ...(left.length === 0 ? [] : [left]));
  return { parts, length: list.length - 1 };
};
