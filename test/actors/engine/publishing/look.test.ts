import { describe, expect, test } from 'vitest';
import { type CommentsRead, readComments } from '../../../../src/actors/engine/publishing/look.ts';

const { signal } = new AbortController();

/** Looks at a pull request with this `updatedAt`, at these times. @returns how often each look read the comments */
const readsOf = async (looks: readonly (readonly [number, string])[]) => {
  let reads = 0;
  const forge = {
    comments: async () => {
      reads += 1;
      return [];
    },
  };
  let before: (CommentsRead & { readonly found: { readonly updatedAt: string } }) | null = null;
  const counts: number[] = [];
  for (const [at, updatedAt] of looks) {
    const found = { number: 1, updatedAt };
    const from = reads;
    const read: CommentsRead = await readComments(forge, found, before, at, signal);
    before = { ...read, found };
    counts.push(reads - from);
  }
  return counts;
};

describe('comments are read', () => {
  test('again for another time of the pull request', async () => {
    const looks = [
      [0, 'one'],
      [5_000, 'one'],
      [6_000, 'two'],
    ] as const;

    expect(await readsOf(looks)).toEqual([1, 1, 1]);
  });

  test('until the second is over in which the pull request moved, and then no more', async () => {
    const looks = [
      [0, 'one'],
      [300, 'one'],
      [999, 'one'],
      [1_000, 'one'],
      [5_000, 'one'],
      [200_000, 'one'],
    ] as const;

    expect(await readsOf(looks)).toEqual([1, 1, 1, 1, 0, 0]);
  });

  test('after 5 minutes in any case', async () => {
    const looks = [
      [0, 'one'],
      [2_000, 'one'],
      [302_000, 'one'],
      [302_001, 'one'],
    ] as const;

    expect(await readsOf(looks)).toEqual([1, 1, 1, 0]);
  });
});
