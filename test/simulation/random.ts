/** A source of chance that is the same for the same seed. */
export interface Random {
  /** From 0 to below 1. */
  next(): number;
  /** A whole number from 0 to below `max`. */
  below(max: number): number;
  chance(probability: number): boolean;
  pick<const Item>(items: readonly [Item, ...Item[]]): Item;
  /** A whole number; small ones are more frequent, so that much happens close together. */
  delay(atMost: number): number;
}

/** mulberry32. */
export const randomFrom = (seed: number): Random => {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (max: number): number => Math.floor(next() * max);
  return {
    next,
    below,
    chance: (probability) => next() < probability,
    pick: (items) => items[below(items.length)] ?? items[0],
    delay: (atMost) => Math.floor(next() ** 3 * atMost),
  };
};
