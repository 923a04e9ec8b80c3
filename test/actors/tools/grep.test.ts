import { symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { describe, expect, test } from 'vitest';
import { grepTool } from '../../../src/actors/tools/grep.ts';
import { createWorkbench, type Workbench } from '../agent/workbench.ts';

const grep = ({ context }: Workbench, args: object) =>
  grepTool.run(grepTool.schema.parse(args), context);

describe('grep', () => {
  test('returns path, line and text, without .git and node_modules', async () => {
    const bench = await createWorkbench();
    for (const path of ['src/a.ts', '.git/b', 'node_modules/c/d.js', 'e/node_modules/f.js'])
      await bench.put(path, 'one\nneedle here\n');

    expect(await grep(bench, { pattern: 'n[e]{2}dle' })).toEqual({
      ok: true,
      text: 'src/a.ts:2:needle here',
    });
  });

  test('searches one file, or the files of a glob', async () => {
    const bench = await createWorkbench();
    for (const path of ['a.ts', 'b.tsx', 'c.js']) await bench.put(path, 'needle\n');

    const some = await grep(bench, { pattern: 'needle', glob: '*.{ts,tsx}' });

    expect(await grep(bench, { pattern: 'needle', path: 'c.js' })).toEqual({
      ok: true,
      text: 'c.js:1:needle',
    });
    expect(some.text.split('\n').sort()).toEqual(['a.ts:1:needle', 'b.tsx:1:needle']);
  });

  test('finding nothing is a result', async () => {
    const bench = await createWorkbench();

    expect(await grep(bench, { pattern: 'x' })).toEqual({ ok: true, text: 'no matches' });
  });

  test.each<[string, object, RegExp]>([
    ['a broken pattern', { pattern: '(' }, /grep: /],
    ['a missing path', { pattern: 'x', path: 'missing' }, /grep|no such|exit code|exist/i],
    ['a path outside', { pattern: 'x', path: '..' }, /outside the workspace/],
  ])('refuses %s', async (_, args, message) => {
    const bench = await createWorkbench();

    expect(await grep(bench, args)).toEqual({ ok: false, text: expect.stringMatching(message) });
  });

  test('a pattern or path that looks like an option is not one', async () => {
    const bench = await createWorkbench();
    await bench.put('-r', 'x --include=y\n');

    expect(await grep(bench, { pattern: '--include=y', path: '-r' })).toEqual({
      ok: true,
      text: '-r:1:x --include=y',
    });
  });

  test('a hostile pattern does not block the server', async () => {
    const bench = await createWorkbench();
    await bench.put('a', `${'a'.repeat(5_000)}!\n`);

    expect(await grep(bench, { pattern: '^(a+)+$' })).toEqual({ ok: true, text: 'no matches' });
  });

  test('stops at 100 matches of 500 characters, in whole lines below 16 KiB', async () => {
    const bench = await createWorkbench();
    await bench.put('short', 'needle\n'.repeat(1_000_000));
    await bench.put('long', `needle${'x'.repeat(2_000_000)}\n`.repeat(2));
    await bench.put('many', `needle${'x'.repeat(1_000)}\n`.repeat(90));

    const short = await grep(bench, { pattern: 'needle', path: 'short' });
    const long = await grep(bench, { pattern: 'needle', path: 'long' });
    const many = await grep(bench, { pattern: 'needle', path: 'many' });

    expect(short.text.split('\n')).toHaveLength(101);
    expect(short).toMatchObject({
      ok: true,
      text: expect.stringMatching(/\[only the first 100 matches; /),
    });
    expect(long.text.split('\n').map((line) => line.length)).toEqual([499, 499]);
    expect(Buffer.byteLength(many.text)).toBeLessThanOrEqual(16_384);
    expect(many.text.split('\n').at(-1)).toMatch(/^\[only the first 32 matches; /);
  });

  test('never waits on a FIFO and follows no symlink out', async () => {
    const bench = await createWorkbench();
    await execa('mkfifo', ['fifo'], { cwd: bench.root });
    await writeFile(join(bench.outside, 'secret'), 'needle');
    await symlink(bench.outside, join(bench.root, 'link'));

    expect(await grep(bench, { pattern: 'needle' })).toEqual({ ok: true, text: 'no matches' });
    expect(await grep(bench, { pattern: 'needle', path: 'fifo' })).toEqual({
      ok: true,
      text: 'no matches',
    });
  });

  test('says that it was cancelled', async () => {
    const bench = await createWorkbench();
    bench.abort.abort();

    expect(await grep(bench, { pattern: 'x' })).toEqual({ ok: false, text: 'cancelled' });
  });
});
