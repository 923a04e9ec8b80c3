import { describe, expect, test } from 'vitest';
import { readTool } from '../../../src/actors/tools/read.ts';
import { createWorkbench } from '../agent/workbench.ts';

const numbered = (count: number): string =>
  Array.from({ length: count }, (_, index) => `line ${index + 1}\n`).join('');

const readFrom = async (content: string | Buffer, args: object = {}) => {
  const { put, context } = await createWorkbench();
  await put('file', content);
  return readTool.run(readTool.schema.parse({ path: 'file', ...args }), context);
};

describe('read', () => {
  test('returns a small file as it is', async () => {
    expect(await readFrom('a\nb\n')).toEqual({ ok: true, text: 'a\nb' });
  });

  test('shows CRLF as LF and no byte order mark', async () => {
    expect(await readFrom('\uFEFFa\r\nb\r\n')).toEqual({ ok: true, text: 'a\nb' });
  });

  test('returns a part and says how to continue', async () => {
    expect(await readFrom(numbered(5), { offset: 2, limit: 2 })).toEqual({
      ok: true,
      text: 'line 2\nline 3\n[lines 2-3 of 5; continue with offset 4]',
    });
    expect(await readFrom(numbered(5), { offset: 4, limit: 9 })).toEqual({
      ok: true,
      text: 'line 4\nline 5\n[lines 4-5 of 5; this is the end of the file]',
    });
  });

  test('stops at 2,000 lines', async () => {
    const { text } = await readFrom('x\n'.repeat(2_500), { limit: 5_000 });

    expect(text.split('\n').at(-1)).toBe('[lines 1-2000 of 2500; continue with offset 2001]');
  });

  test('stops at whole lines below 16 KiB', async () => {
    const { text } = await readFrom(`${'ä'.repeat(500)}\n`.repeat(100));

    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(16_384);
    expect(text).toMatch(/ä{500}\n\[lines 1-16 of 100; continue with offset 17\]$/);
  });

  test('shows the beginning of a line that is longer than an answer', async () => {
    const { text } = await readFrom(`short\n${'x'.repeat(50_000)}\nend\n`, { offset: 2 });

    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(16_384);
    expect(text).toMatch(/^x+\n\[line 2 has 50000 bytes; .* continue with offset 3\]$/);
  });

  test.each<[string, string | Buffer, object, RegExp]>([
    ['a binary file', Buffer.from([1, 0, 2]), {}, /^file is a binary file \(3 bytes\)$/],
    ['an offset behind the end', 'a\n', { offset: 2 }, /^file has only 1 lines$/],
    ['a missing file', 'a\n', { path: 'other' }, /^other does not exist$/],
  ])('refuses %s', async (_, content, args, message) => {
    expect(await readFrom(content, args)).toEqual({
      ok: false,
      text: expect.stringMatching(message),
    });
  });

  test('says that a file is empty', async () => {
    expect(await readFrom('')).toEqual({ ok: true, text: '(the file is empty)' });
  });
});
