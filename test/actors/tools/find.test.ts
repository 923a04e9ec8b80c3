import { symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { findTool } from '../../../src/actors/tools/find.ts';
import { createWorkbench, type Workbench } from '../agent/workbench.ts';

const find = ({ context }: Workbench, args: object) =>
  findTool.run(findTool.schema.parse(args), context);

const tree = [
  'b.ts',
  'a.ts',
  'src/c.ts',
  'src/deep/d.test.ts',
  'src/deep/er/e.tsx',
  '[id]/f.ts',
  '.git/g.ts',
  'src/node_modules/h.ts',
];

const createTree = async (): Promise<Workbench> => {
  const bench = await createWorkbench();
  for (const path of tree) await bench.put(path, '');
  return bench;
};

describe('find', () => {
  test.each<[string, object, readonly string[]]>([
    [
      'a name',
      { pattern: '*.ts' },
      ['[id]/f.ts', 'a.ts', 'b.ts', 'src/c.ts', 'src/deep/d.test.ts'],
    ],
    ['a name below a folder', { pattern: '*.ts', path: 'src' }, ['src/c.ts', 'src/deep/d.test.ts']],
    ['a folder with glob characters', { pattern: '*', path: '[id]' }, ['[id]/f.ts']],
    ['a path with **', { pattern: 'src/**/*.ts' }, ['src/c.ts', 'src/deep/d.test.ts']],
    ['a path with ** in front', { pattern: '**/c.ts' }, ['src/c.ts']],
    ['a path with two **', { pattern: '**/deep/**/*.tsx' }, ['src/deep/er/e.tsx']],
    [
      'a path with ** at the end',
      { pattern: 'src/deep/**' },
      ['src/deep/d.test.ts', 'src/deep/er/e.tsx'],
    ],
    ['braces', { pattern: '*.{test.ts,tsx}' }, ['src/deep/d.test.ts', 'src/deep/er/e.tsx']],
    ['an exact path', { pattern: './src/c.ts' }, ['src/c.ts']],
    ['a test of find itself', { pattern: '-delete' }, ['no files']],
  ])('takes %s', async (_, args, expected) => {
    const bench = await createTree();

    expect(await find(bench, args)).toEqual({ ok: true, text: expected.join('\n') });
    expect((await bench.files()).length).toBeGreaterThan(tree.length);
  });

  test.each<[string, object, RegExp]>([
    ['a path outside', { pattern: '*', path: '..' }, /outside the workspace/],
    ['a symlink outside', { pattern: '*', path: 'link' }, /outside the workspace/],
    ['a file', { pattern: '*', path: 'a.ts' }, /a\.ts is not a folder/],
    ['a missing folder', { pattern: '*', path: 'missing' }, /missing does not exist/],
  ])('refuses %s', async (_, args, message) => {
    const bench = await createTree();
    await symlink(bench.outside, join(bench.root, 'link'));

    expect(await find(bench, args)).toEqual({ ok: false, text: expect.stringMatching(message) });
  });

  test('lists a symlink but does not follow it', async () => {
    const bench = await createWorkbench();
    await writeFile(join(bench.outside, 'secret'), '');
    await symlink(bench.outside, join(bench.root, 'link'));

    expect(await find(bench, { pattern: '*' })).toEqual({ ok: true, text: 'link' });
  });

  test('stops at 1,000 files, sorted, and says so', async () => {
    const bench = await createWorkbench();
    const names = Array.from({ length: 1_200 }, (_, index) => `f${String(index).padStart(4, '0')}`);
    await Promise.all(names.map((name) => bench.put(name, '')));

    const { text } = await find(bench, { pattern: 'f*' });

    expect(text.split('\n').slice(0, -1)).toEqual(names.slice(0, 1_000));
    expect(text.split('\n').at(-1)).toMatch(/^\[the first 1000 of 1200 files; /);
  });
});
