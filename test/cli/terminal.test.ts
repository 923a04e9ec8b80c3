import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';

const osc = '\u001b]52;c;ZXZpbA==\u0007';
const hostile = `x${osc}\u009b31m\u202e\u2066\u200f\u061c\u007f`;
const controls = /[^\P{Cc}\n\t]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;

/** A tracker file of somebody else, with such characters in every text. */
const setUp = () => {
  const project = openProject();
  const at = '2026-11-20T10:00:00.000Z';
  const times = { created_at: at, updated_at: at };
  const issue = (id: string, over: object) =>
    JSON.stringify({
      id,
      title: hostile,
      description: hostile,
      status: 'open',
      priority: 2,
      labels: [hostile],
      ...times,
      ...over,
    });
  mkdirSync(join(project.root, '.beads'));
  const lines = [
    issue('bd-odd', { status: `${hostile}\nbd-fake  queued (ready)` }),
    issue('bd-held', { status: 'in_progress', assignee: hostile }),
  ];
  writeFileSync(join(project.root, '.beads', 'issues.jsonl'), `${lines.join('\n')}\n`);
  return project;
};

test.each([
  ['list'],
  ['show', 'bd-odd'],
  ['show', 'bd-held'],
  ['explain', 'bd-held'],
  ['dep', 'tree', 'bd-odd'],
  ['engineer', 'bd-held'],
  ['show', hostile],
  [hostile],
])('agent %j prints no control character, as text or as JSON', async (...words) => {
  const { agent } = setUp();

  const shown = await agent(...words);
  const json = await agent(...words, '--json');

  for (const { out, err } of [shown, json]) expect(`${out}${err}`).not.toMatch(controls);
  expect(shown.out + shown.err + json.out + json.err).not.toBe('');
});

test('JSON keeps every character, as an escape', async () => {
  const { agent } = setUp();

  const { out } = await agent('show', 'bd-held', '--json');

  expect(out).toContain('\\u009b31m\\u202e\\u2066\\u200f\\u061c\\u007f');
  expect(JSON.parse(out).title).toBe(hostile);
});

test('a status cannot add a line to the list', async () => {
  const { agent } = setUp();

  const { out } = await agent('list');

  expect(
    out
      .trim()
      .split('\n')
      .filter((line) => line.startsWith('bd-')),
  ).toHaveLength(2);
});

test('nothing but the sanitiser writes to the terminal', () => {
  const folder = new URL('../../src/', import.meta.url).pathname;
  const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  );

  const writers = sources.filter((name) =>
    /(process|to)(\.std(out|err)|\[\w+\])\.write|console\.\w+\(/.test(
      readFileSync(join(folder, name), 'utf8'),
    ),
  );

  // The first holds a program for an agent, whose output is a pipe.
  expect(writers.sort()).toEqual(['actors/assistants/hand-over.ts', 'cli/output/io.ts']);
});

test('the first reading of a large file shows on a terminal how far it is, and nothing of it in a pipe', {
  tags: ['slow'],
}, async () => {
  const first = setUp();
  const second = setUp();
  for (const { root } of [first, second]) {
    const at = '2026-11-20T10:00:00.000Z';
    const issue = { title: 'x', description: '', status: 'open', priority: 2, labels: [] };
    const lines = Array.from({ length: 4_100 }, (_, number) =>
      JSON.stringify({ id: `bd-n${number}`, ...issue, created_at: at, updated_at: at }),
    );
    writeFileSync(join(root, '.beads', 'issues.jsonl'), `${lines.join('\n')}\n`);
  }

  const shown = await first.shell('script -qec "$AGENT list --limit 1" /dev/null');
  const piped = await second.agent('list', '--limit', '1');

  expect(shown.out).toContain('reading 2000 of 4100 tasks');
  expect(shown.out).toContain('reading 4000 of 4100 tasks');
  expect(shown.out).not.toContain('4100 of 4100');
  expect(piped.out + piped.err).not.toContain('reading');
});
