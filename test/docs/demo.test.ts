import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/temporary.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** What differs from run to run and from Node to Node, made the same. */
const settled = (text: string): readonly string[] =>
  text
    .replace(/\bbd-[0-9a-z]{4}\b/g, 'bd-0000')
    .replace(/ in \d+\.\d s; .*$/gm, ' in 0.9 s; …')
    .replace(/(bash did not succeed:\n)(?: {4}.*\n)+/g, '$1    …\n')
    .split('\n');

/** A shown line that ends in `…` stands for a longer one. */
const cutLike = (line: string, shown: string): string =>
  shown.endsWith('…') && line.startsWith(shown.slice(0, -1)) ? shown : line;

test('the README shows what the demo prints', { tags: ['slow'] }, () => {
  const [, shown = ''] =
    /```\n(\$ agent engineer[\s\S]*?)\n```/.exec(readFileSync(join(root, 'README.md'), 'utf8')) ??
    [];
  const folder = temporaryFolder();

  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(root, 'scripts', 'demo.mjs')],
    {
      env: {
        ...process.env,
        TMPDIR: folder,
        OPENAI_BASE_URL: 'http://127.0.0.1:9',
        API_MODE: 'proxy',
      },
      encoding: 'utf8',
    },
  );

  const lines = settled(stdout);
  const runs = lines.flatMap((line, index) => (line === '$ agent engineer bd-0000' ? [index] : []));
  const wanted = settled(shown);
  expect([status, stderr]).toEqual([0, expect.anything()]);
  const printed = lines.slice(runs[1], (runs[1] ?? 0) + wanted.length);
  expect(printed.map((line, index) => cutLike(line, wanted[index] ?? ''))).toEqual(wanted);

  const [demo = ''] = readdirSync(folder).filter((name) => name.startsWith('agent-demo-'));
  const tasks = join(folder, demo, 'basket', '.beads', 'tasks');
  expect(readdirSync(tasks)).toHaveLength(3);
  for (const task of readdirSync(tasks)) {
    const results = readFileSync(join(tasks, task, '30-results.md'), 'utf8');
    expect(results).toContain('- Model: scripted-over-http');
    expect(results).toContain('no language model was called');
  }
});
