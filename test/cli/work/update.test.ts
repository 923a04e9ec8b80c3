import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openGitProject } from '../../support/git-project.ts';

/** Two engineers who write the same file; one who finds a conflict keeps both sides. */
const open = () => {
  const bash = (command: string) => ({ tool: 'bash', arguments: { command } });
  const end = { calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'written' } }] };
  const scripts = ['one', 'two'].map((title) => ({
    title,
    turns: [
      {
        calls: [
          bash(`if grep -q "<<<" text; then echo one, two > text; else echo ${title} > text; fi`),
        ],
      },
      end,
    ],
  }));
  return openGitProject(scripts, { mode: 'worktree' });
};

/** The commands that an answer proposes, one after the other. */
const stepsIn = (text: string): readonly string[][] => {
  const [, after = ''] = text.split('to go on:\n');
  const lines = after.split('\n').filter((line) => line.startsWith('  agent '));
  return lines.map((line) => line.trim().split(' ').slice(1));
};

test('after a conflict the commands that are named lead to the merge, and undo back, without git', async () => {
  const { agent, root } = open();
  const ids: string[] = [];
  for (const title of ['one', 'two']) ids.push((await agent('create', title)).out.trim());
  const [one = '', two = ''] = ids;
  await agent('run', '--role', 'engineer', one, two);

  const conflict = await agent('merge', one, two);
  const steps = stepsIn(conflict.err);
  const [update = [], merge = []] = steps;
  const updated = await agent(...update);
  const merged = await agent(...merge);
  const text = readFileSync(join(root, 'text'), 'utf8');
  const again = await agent('update', two, '--json');
  const undone = await agent('undo', two);
  const list = await agent('list', '--json');

  expect(conflict.code).toBe(4);
  expect(steps).toEqual([
    ['update', two],
    ['merge', two],
  ]);
  expect(updated.code).toBe(0);
  expect(updated.out).toContain(
    `${two}: attempt 2 goes on with it, since both main and agent/${two}/1 changed the same lines (${one})\n  text\n`,
  );
  expect(updated.out).toContain('written');
  expect(merged).toMatchObject({ code: 0 });
  expect(text).toBe('one, two\n');
  expect(readFileSync(join(root, 'text'), 'utf8')).toBe('one\n');
  expect(undone).toMatchObject({
    code: 0,
    out: expect.stringMatching(
      new RegExp(
        `^${two} attempt 2: undone in main \\(\\w{12}\\), not tested; the task is open again: agent run ${two}\n$`,
      ),
    ),
  });
  expect(list.out).toContain(`"status":"queued"`);
  expect(again).toMatchObject({ code: 4 });
  expect(JSON.parse(again.out || again.err)).toMatchObject({
    error: { code: 'event_not_allowed' },
  });
});
