import { execa } from 'execa';
import { describe, expect, test } from 'vitest';
import { editTool } from '../../../src/actors/tools/edit.ts';
import { createWorkbench } from '../agent/workbench.ts';

type Pair = readonly [oldText: string, newText: string];

const editIn = async (content: string | Buffer, ...pairs: readonly Pair[]) => {
  const { put, get, context } = await createWorkbench();
  await put('file', content);
  const edits = pairs.map(([old_text, new_text]) => ({ old_text, new_text }));
  const { ok, text } = await editTool.run({ path: 'file', edits }, context);
  return { ok, text, content: await get('file') };
};

describe('edit makes', () => {
  test.each<[string, string, readonly Pair[], string]>([
    ['an exact match', 'a b c\n', [['b', 'B']], 'a B c\n'],
    [
      'several edits, in any order',
      '1\n2\n3\n4\n',
      [
        ['4', 'four'],
        ['1', 'one'],
      ],
      'one\n2\n3\nfour\n',
    ],
    [
      'two edits of one line',
      'a b c\n',
      [
        ['a', 'A'],
        ['c', 'C'],
      ],
      'A b C\n',
    ],
    ['a deletion', 'a\nb\nc\n', [['b\n', '']], 'a\nc\n'],
    ['an insertion at the start of a file', '\na\n', [['\na', 'x\na']], 'x\na\n'],
    ['a change in a file without a last line end', 'a\nb', [['b', 'c']], 'a\nc'],
    ['a text with $ signs as it is', 'a\n', [['a', '$& $1 $$']], '$& $1 $$\n'],
    ['a match over CRLF', 'a\r\nb\r\nc\r\n', [['a\nb', 'x\ny\nz']], 'x\r\ny\r\nz\r\nc\r\n'],
    ['a match given in CRLF', 'a\nb\n', [['a\r\nb', 'x\r\ny']], 'x\ny\n'],
    ['mixed line ends, which stay as they are', 'a\r\nb\nc\n', [['b', 'x']], 'a\r\nx\nc\n'],
    ['a file with a byte order mark', '\uFEFFa\nb\n', [['a', 'x']], '\uFEFFx\nb\n'],
    ['an exact match although a folded one exists', "'a'\n’a’\n", [["'a'", 'x']], 'x\n’a’\n'],
    [
      'a match but for trailing spaces of the file',
      'if  \n  a\t\nend\n',
      [['if\n  a\nend', 'x']],
      'x\n',
    ],
    ['a match but for trailing spaces of old_text', 'a;\nb;\n', [['a;  ', 'x;']], 'x;\nb;\n'],
    ['a match but for quotes', 'say(“hé’s”)\n', [['say("hé\'s")', 'x']], 'x\n'],
    ['a match but for dashes', 'a – b — c\n', [['a - b - c', 'x']], 'x\n'],
    ['a match but for no-break spaces', 'é a\u00a0b ü\n', [['a b', 'x']], 'é x ü\n'],
    ['a match but for composition', 'cafe\u0301 x\n', [['café', 'tea']], 'tea x\n'],
    [
      'a folded match that keeps the rest',
      '“keep”\n“a”  \n“keep”  \r\n',
      [['"a"', 'b']],
      '“keep”\nb\n“keep”  \r\n',
    ],
  ])('%s', async (_, content, pairs, expected) => {
    const result = await editIn(content, ...pairs);

    expect(result).toMatchObject({ ok: true, content: expected });
  });
});

describe('edit refuses, and changes nothing:', () => {
  test.each<[string, string, readonly Pair[], RegExp]>([
    [
      'an ambiguous text',
      'a\nb\na\nb\n',
      [['a', 'x']],
      /edits\[0\]: .*more than once, at lines 1, 3;/,
    ],
    ['an ambiguous folded text', '“a”\nb\n‘a’ “a”\n', [['"a"', 'x']], /at lines 1, 3;/],
    [
      'a missing text',
      'function one() {}\nfunction two() {}\n',
      [['function tow() {}', 'x']],
      /2: function two\(\) \{\}/,
    ],
    ['a text unlike anything', 'abc\n', [['zzzzzz', 'x']], /no line is like/],
    [
      'all edits when one is missing',
      'a\nb\n',
      [
        ['a', 'x'],
        ['zz', 'y'],
      ],
      /edits\[1\]: old_text was not found/,
    ],
    [
      'overlapping edits',
      'a b c\n',
      [
        ['b c', 'y'],
        ['a b', 'x'],
      ],
      /edits\[1\] and edits\[0\] overlap/,
    ],
    [
      'the same edit twice',
      'a\n',
      [
        ['a', 'x'],
        ['a', 'y'],
      ],
      /overlap/,
    ],
    ['an edit without effect', 'a\n', [['a', 'a']], /the same/],
    ['a folded match inside a longer word', 'return ab\n', [['return a  ', 'x']], /not found/],
    ['half of a ligature', 'o\ufb01ce\n', [['of', 'x']], /not found/],
    ['only spaces', 'a\nb\n', [['   ', 'x']], /not found/],
  ])('%s', async (_, content, pairs, message) => {
    const result = await editIn(content, ...pairs);

    expect(result).toEqual({ ok: false, text: expect.stringMatching(message), content });
  });

  test('bytes that are not UTF-8', async () => {
    const { put, context } = await createWorkbench();
    await put('file', Buffer.from([0x61, 0xff, 0x62]));

    const result = await editTool.run(
      { path: 'file', edits: [{ old_text: 'a', new_text: 'x' }] },
      context,
    );

    expect(result).toEqual({ ok: false, text: expect.stringMatching(/not UTF-8/) });
  });

  test('a protected file', async () => {
    const { put, get, context } = await createWorkbench();
    await put('.git/config', 'a');

    const result = await editTool.run(
      { path: '.git/config', edits: [{ old_text: 'a', new_text: 'x' }] },
      context,
    );

    expect(result).toMatchObject({ ok: false, text: expect.stringMatching(/protected/) });
    expect(await get('.git/config')).toBe('a');
  });
});

describe('edit answers a unified diff', () => {
  const lines = Array.from({ length: 20 }, (_, index) => `l${index + 1}\n`).join('');

  test('with three lines of context', async () => {
    const { text } = await editIn(lines, ['l10\n', 'ten\nten and a half\n']);

    expect(text.split('\n')).toEqual([
      'edited file',
      '--- a/file',
      '+++ b/file',
      '@@ -7,7 +7,8 @@',
      ...[' l7', ' l8', ' l9', '-l10', '+ten', '+ten and a half', ' l11', ' l12', ' l13'],
    ]);
  });

  test('with a hunk for each change, the later ones shifted', async () => {
    const { text } = await editIn(lines, ['l19', 'x'], ['l2\n', '']);

    expect(text.split('\n').slice(3)).toEqual([
      '@@ -1,5 +1,4 @@',
      ...[' l1', '-l2', ' l3', ' l4', ' l5'],
      '@@ -16,5 +15,5 @@',
      ...[' l16', ' l17', ' l18', '-l19', '+x', ' l20'],
    ]);
  });

  test('that git can reverse', async () => {
    const { put, get, context, root } = await createWorkbench();
    await put('file', lines);
    const edits = [
      ['l1\n', ''],
      ['l5\nl6', 'five'],
      ['l9', 'l9\nnew'],
      ['l20', 'last'],
    ].map(([old_text = '', new_text = '']) => ({ old_text, new_text }));

    const { text } = await editTool.run({ path: 'file', edits }, context);
    await put('change.diff', `${text.split('\n').slice(1).join('\n')}\n`);
    await execa('git', ['apply', '--reverse', '--unidiff-zero', 'change.diff'], { cwd: root });

    expect(await get('file')).toBe(lines);
  });

  test('cut to 8 KiB', async () => {
    const { ok, text } = await editIn('a\n', ['a', 'line\n'.repeat(5_000)]);

    expect(ok).toBe(true);
    expect(Buffer.byteLength(text)).toBeLessThan(8_400);
    expect(text).toMatch(/\[the diff has \d+ more lines\]$/);
  });
});

test('a call with more than 50 edits is refused, and changes nothing', async () => {
  const { put, get, context } = await createWorkbench();
  await put('file', 'a\n');
  const edits = Array.from({ length: 51 }, () => ({ old_text: 'a', new_text: 'b' }));

  const { ok, text } = await editTool.run({ path: 'file', edits }, context);

  expect(ok).toBe(false);
  expect(text).toContain('50');
  expect(await get('file')).toBe('a\n');
});
