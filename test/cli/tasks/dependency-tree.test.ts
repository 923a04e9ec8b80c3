import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openProject } from '../../support/cli.ts';

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
