import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createIo } from '../../../src/cli/output/io.ts';
import { wrap, wrapAfter, wrapLines } from '../../../src/cli/output/wrap.ts';

const word = fc.stringMatching(/^[a-z:;/.]{1,30}$/);

test('no word is broken that fits, no line is too wide, and nothing is lost', () => {
  fc.assert(
    fc.property(
      fc.array(word, { minLength: 1 }),
      fc.integer({ min: 30, max: 90 }),
      (words, room) => {
        const lines = wrap(words.join(' '), room);

        expect(lines.join(' ')).toBe(words.join(' '));
        for (const line of lines) expect(line.length).toBeLessThanOrEqual(room);
      },
    ),
  );
});

test('a path that is wider has its line for itself', () => {
  const path = `/${'a'.repeat(50)}`;

  expect(wrap(`cannot read ${path} twice`, 40)).toEqual(['cannot read', path, 'twice']);
});

test('notes break between words on a terminal, below their beginning, and a command stays whole', () => {
  const written: string[] = [];
  const stderr = { isTTY: true, columns: 40, write: (text: string) => written.push(text) };
  const text = `  it runs in the background; watch it with: agent logs -f bd-a1b2\nshort`;

  createIo({ write: () => {} }, stderr).err(text);
  createIo({ write: () => {} }, { ...stderr, isTTY: false }).err(text);

  expect(written).toEqual([
    '  it runs in the background; watch it\n  with: agent logs -f bd-a1b2\nshort\n',
    `${text}\n`,
  ]);
  expect(wrapLines("say 'two or three words here' once more", 30)).toBe(
    "say 'two or three words here'\nonce more",
  );
});

test('a command with a short flag stays in one piece', () => {
  const text = 'bd-a1 attempt 1 continues in the background; see: agent logs -f bd-a1';

  expect(wrapLines(text, 60).split('\n').at(-1)).toBe('agent logs -f bd-a1');
});

test('a text of several lines stays below its beginning, and each line has its own width', () => {
  expect(wrapAfter('  why  ', 'It has no field.\n\nPlayed by the scripted model.', 30)).toBe(
    '  why  It has no field.\n\n       Played by the scripted\n       model.',
  );
});
