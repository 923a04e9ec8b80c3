import { expect, test } from 'vitest';
import { writeTool } from '../../../src/actors/tools/write.ts';
import { createWorkbench } from '../agent/workbench.ts';

test('write creates, then replaces, and says which', async () => {
  const { context, get } = await createWorkbench();

  const created = await writeTool.run({ path: 'src/a.ts', content: 'ä\n' }, context);
  const replaced = await writeTool.run({ path: 'src/a.ts', content: '' }, context);

  expect(created).toEqual({ ok: true, text: 'created src/a.ts (3 bytes)' });
  expect(replaced).toEqual({ ok: true, text: 'replaced src/a.ts (0 bytes)' });
  expect(await get('src/a.ts')).toBe('');
});

test('write refuses protected names and says so', async () => {
  const { context, files } = await createWorkbench();

  const result = await writeTool.run({ path: '.beads/issues.jsonl', content: '{}' }, context);

  expect(result).toEqual({
    ok: false,
    text: '.beads/issues.jsonl is protected: agents may not write to .beads',
  });
  expect(await files()).toEqual([]);
});

test.each(['.github/workflows/ci.yml', 'packages/a/.npmrc', 'AGENTS.md'])(
  'write creates %s, and says that a person reviews it before it takes effect',
  async (path) => {
    const { context, get } = await createWorkbench();

    const result = await writeTool.run({ path, content: 'x' }, { ...context, isOwn: true });

    expect(result).toMatchObject({
      ok: true,
      text: expect.stringContaining("runs on a person's machine"),
    });
    expect(await get(path)).toBe('x');
  },
);

test("write refuses reviewed names in the project's own folder, where nobody reviews them first", async () => {
  const { context, files } = await createWorkbench();

  const result = await writeTool.run({ path: 'a/.npmrc', content: 'x' }, context);

  expect(result).toEqual({
    ok: false,
    text: expect.stringMatching(/may not write to .npmrc in the project's own/),
  });
  expect(await files()).toEqual([]);
});
