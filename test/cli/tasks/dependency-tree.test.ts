import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openProject } from '../../support/cli.ts';

test('without a task, the trees of all that is not complete', async () => {
  const { agent } = openProject();
  const create = async (...words: string[]) => (await agent('create', ...words)).out.trim();
  const done = await create('done');
  await agent('close', done);
  const one = await create('one', '--deps', done);
  const two = await create('two', '--deps', one);

  const { out } = await agent('dep', 'tree');
  const json = JSON.parse((await agent('dep', 'tree', '--json')).out);
  await agent('close', one);
  await agent('close', two);
  const none = await agent('dep', 'tree');

  expect(out).toBe(`${two}  queued  two\n  ${one}  queued  one\n    ${done}  complete  done\n`);
  expect(json).toMatchObject([{ task_id: two, depends_on: [{ task_id: one }] }]);
  expect([none.code, none.out]).toEqual([0, '']);
  expect(none.err).toContain('every task is complete');
});

test('a tree shows the dependencies of a task once, however many paths lead to it', async () => {
  const { agent, root } = openProject();
  await agent('init', '--tracker', 'embedded');
  const layers = Array.from({ length: 30 }, (_, n) => [`bd-a${n}`, `bd-b${n}`]);
  const lines = layers.flatMap((layer, n) =>
    layer.map((id) =>
      JSON.stringify({
        ...{ id, title: id, status: 'open', priority: 2, issue_type: 'task' },
        created_at: '2026-01-15T09:30:00.000Z',
        updated_at: '2026-01-15T09:30:00.000Z',
        dependencies: (layers[n - 1] ?? []).map((depends_on_id) => ({
          ...{ issue_id: id, depends_on_id, type: 'blocks' },
        })),
      }),
    ),
  );
  writeFileSync(join(root, '.beads', 'issues.jsonl'), `${lines.join('\n')}\n`);

  const { code, out } = await agent('dep', 'tree', 'bd-a29');

  expect(code).toBe(0);
  expect(out.split('\n').filter((line) => line.includes('bd-a28'))).toHaveLength(1);
  expect(out).toMatch(/^ {4}bd-a27 {2}queued {2}bd-a27 {2}\(see above\)$/m);
  expect(JSON.parse((await agent('dep', 'tree', 'bd-a2', '--json')).out)).toMatchObject({
    depends_on: [{ depends_on: [{}, {}] }, { depends_on: [{}, {}] }],
  });
});
