import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { locate } from '../../../src/actors/tools/confine.ts';
import { createWorkbench } from '../agent/workbench.ts';

describe('a place inside the workspace', () => {
  test.each([
    ['src/a.ts', './src/a.ts'],
    ['./src/../src/a.ts', './src/a.ts'],
    ['not/yet/there.ts', './not/yet/there.ts'],
    ['-rf', './-rf'],
    ['..hidden', './..hidden'],
    ['.', './'],
    ['inner/a.ts', './src/a.ts'],
  ])('%s is %s', async (path, expected) => {
    const { root, put } = await createWorkbench();
    await put('src/a.ts', 'a');
    await symlink('src', join(root, 'inner'));

    expect(await locate(root, path, 'read')).toMatchObject({ ok: true, value: { path: expected } });
  });

  test('may be given as an absolute path', async () => {
    const { root } = await createWorkbench();

    expect(await locate(root, join(root, 'a.ts'), 'write')).toEqual({
      ok: true,
      value: { parts: ['a.ts'], path: './a.ts', reviewed: null },
    });
  });
});

describe('a path that leads out is refused', () => {
  test.each([
    ['..', /outside the workspace/],
    ['../outside/secret', /outside the workspace/],
    ['a/../../outside', /outside the workspace/],
    ['/etc/passwd', /outside the workspace/],
    ['/', /outside the workspace/],
    ['link/secret', /outside the workspace/],
    ['link', /outside the workspace/],
    ['deep/../link/new/file', /outside the workspace/],
    ['dangling', /cannot be followed/],
    ['dangling/file', /cannot be followed/],
    ['loop/file', /cannot be followed/],
    ['a\0b', /NUL/],
    ['file/below', /not a folder/],
    ['n'.repeat(300), /too long/],
    // Each folder that does not exist costs a copy of the path: 2 MiB of them ended the server.
    ['a/'.repeat(3_000), /^(a\/){100}… is too long$/],
  ])('%j', async (path, message) => {
    const { root, outside, put } = await createWorkbench();
    await put('file', 'a');
    await symlink(outside, join(root, 'link'));
    await symlink(join(outside, 'missing'), join(root, 'dangling'));
    await symlink('loop', join(root, 'loop'));

    for (const access of ['read', 'write'] as const) {
      const located = await locate(root, path, access);

      expect(located).toEqual({ ok: false, text: expect.stringMatching(message) });
    }
  });

  test('also a neighbour whose name begins like the root', async () => {
    const { root } = await createWorkbench();

    expect(await locate(root, `${root}-other/file`, 'read')).toMatchObject({ ok: false });
  });
});

describe('held names', () => {
  test.each([
    '.git',
    '.git/config',
    'packages/a/.git/hooks/pre-commit',
    '.GIT/config',
    '.beads/issues.jsonl',
    '.gitmodules',
    '.vscode/tasks.json',
    '.idea/a.xml',
    '.mcp.json',
    '.claude/settings.json',
    '.codex/config.toml',
    '.gemini/settings.json',
    '.cursor/rules',
    '.opencode/a',
    '.envrc',
    '.husky/pre-commit',
    '.agent/roles/tester.yml',
    'packages/a/opencode.json',
    'alias/config',
  ])('%s may be read, not written', async (path) => {
    const { root } = await createWorkbench();
    await mkdir(join(root, '.git'));
    await symlink('.git', join(root, 'alias'));

    const [read, write] = await Promise.all([
      locate(root, path, 'read'),
      locate(root, path, 'write'),
    ]);

    expect(read.ok).toBe(true);
    expect(write).toEqual({
      ok: false,
      text: expect.stringMatching(/is protected: agents may not write to \.?\w/),
    });
  });

  test.each(['cfg/settings.json', 'cfg', 'editor/launch.json', '.vscode/new.json'])(
    '%s, which a protected link leads to, may not be written',
    async (path) => {
      const { root } = await createWorkbench();
      await mkdir(join(root, 'editor'));
      await symlink('a', join(root, '.vscode'));
      await symlink('editor', join(root, 'a'));
      await symlink('cfg', join(root, '.claude'));

      expect(await locate(root, path, 'write_reviewed')).toMatchObject({ ok: false });
      expect(await locate(root, 'editors/a', 'write')).toMatchObject({ ok: true });
    },
  );

  test.each(['.gitignore', 'src/git/config', '.beads-notes', 'claude/a'])(
    '%s is not protected',
    async (path) => {
      const { root } = await createWorkbench();

      expect(await locate(root, path, 'write')).toMatchObject({ ok: true });
    },
  );
});
