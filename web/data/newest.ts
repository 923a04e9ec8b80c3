import type { Frame } from './frame.ts';

/** What the page keeps of the entries of one task, however much the task writes. */
export const keptAtMost = { frames: 22_000, characters: 16_000_000 };
/** What stays at a cut: old entries leave together, since the views read everything again then. */
const staying = { frames: 20_000, characters: 14_000_000 };

interface Newest {
  readonly frames: readonly Frame[];
  /** Older ones have left. */
  readonly isCut: boolean;
}

/** Keeps the newest entries of those that are added, each once. */
export const createNewest = (): ((more: readonly Frame[]) => Newest) => {
  let newest: Newest = { frames: [], isCut: false };
  let sizes: number[] = [];
  let characters = 0;
  const leaveOld = (frames: readonly Frame[]): Newest => {
    let from = 0;
    // One entry stays, as large as it may be.
    while (
      from < frames.length - 1 &&
      (frames.length - from > staying.frames || characters > staying.characters)
    ) {
      characters -= sizes[from] ?? 0;
      from += 1;
    }
    sizes = sizes.slice(from);
    return { frames: frames.slice(from), isCut: true };
  };
  return (more) => {
    const last = newest.frames.at(-1)?.seq ?? 0;
    const fresh = more.filter(({ seq }) => seq > last);
    if (fresh.length === 0) return newest;
    const frames = [...newest.frames, ...fresh];
    for (const { data } of fresh) {
      const size = JSON.stringify(data).length;
      sizes.push(size);
      characters += size;
    }
    const isFull = frames.length > keptAtMost.frames || characters > keptAtMost.characters;
    newest = isFull ? leaveOld(frames) : { frames, isCut: newest.isCut };
    return newest;
  };
};
