import { describe, expect, test } from 'vitest';
import {
  createHeadTailBuffer,
  keepHead,
  keepHeadAndTail,
  keepWholeLines,
} from '../../../src/actors/process/head-tail-buffer.ts';

describe('bounded text', () => {
  test('keeps everything that fits, whatever the pieces', () => {
    const kept = createHeadTailBuffer({ headBytes: 4, tailBytes: 6 });

    for (const piece of ['ab', 'cde', '', 'fghij']) kept.push(piece);

    expect(kept.read()).toEqual({ text: 'abcdefghij', truncatedBytes: 0 });
  });

  test('keeps head and tail and says how much is missing', () => {
    const kept = createHeadTailBuffer({ headBytes: 3, tailBytes: 2 });

    for (const piece of ['abcd', 'efgh', 'ij']) kept.push(piece);

    expect(kept.read()).toEqual({ text: 'abc\n[5 bytes left out here]\nij', truncatedBytes: 5 });
  });

  test('never cuts inside a character', () => {
    const kept = createHeadTailBuffer({ headBytes: 5, tailBytes: 5 });

    kept.push('äöü–äöü');

    expect(kept.read()).toEqual({ text: 'äö\n[7 bytes left out here]\nöü', truncatedBytes: 7 });
  });

  test('keeps nothing when it may keep nothing', () => {
    const kept = createHeadTailBuffer({ headBytes: 0, tailBytes: 0 });

    kept.push('ab');
    kept.push('c');

    expect(kept.read().truncatedBytes).toBe(3);
  });

  test('a long text is cut to the limit, a short one is left alone', () => {
    const long = 'ä'.repeat(20_000);

    expect(keepHeadAndTail('short', 100)).toBe('short');
    expect(Buffer.byteLength(keepHeadAndTail(long, 16_384))).toBeLessThanOrEqual(16_384);
    expect(keepHeadAndTail(long, 16_384)).not.toContain('\uFFFD');
    expect(keepHead('aäb', 2)).toBe('a');
  });

  test('whole lines stop before the limit', () => {
    expect(keepWholeLines(['ab', 'cd', 'ef'], 6)).toEqual({ text: 'ab\ncd', count: 2 });
    expect(keepWholeLines(['abcdef'], 3)).toEqual({ text: '', count: 0 });
  });
});
