import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openProject } from '../../support/cli.ts';
import { temporaryFolder } from '../../support/temporary.ts';

interface Line {
  readonly msg: string;
  readonly task_id?: string;
  readonly attempt?: number;
  readonly step?: string;
}

const script = {
  scripts: [
    {
      turns: [
        { say: '', calls: [{ tool: 'bash', arguments: { command: 'echo my-words' } }] },
        {
          say: '',
          calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'my-words' } }],
        },
      ],
    },
  ],
};

test('the log of a server has a line for each attempt, and at level debug for each step', async () => {
  const file = join(temporaryFolder(), 'script.json');
  writeFileSync(file, JSON.stringify(script));
  const { agent, onTerminal } = openProject({
    api: { backend: 'scripted', script: file },
    logging: { level: 'debug' },
  });
  const id = (await agent('create', 'look', '--role', 'engineer')).out.trim();
  await agent('run', id);
  const text = (await agent('server', 'logs')).out;
  const lines: Line[] = text
    .trim()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line));

  const about = lines.filter(({ task_id }) => task_id === id);
  expect(about.map(({ msg, step }) => [msg, step])).toEqual([
    ['attempt started', undefined],
    ['model call ended', 'turn 1'],
    ['tool call ended', expect.any(String)],
    ['model call ended', 'turn 2'],
    ['tool call ended', expect.any(String)],
    ['attempt complete', undefined],
  ]);
  expect(about.every(({ attempt }) => attempt === 1)).toBe(true);
  expect(text).not.toContain('my-words');

  const shown = (await onTerminal('server', 'logs')).out;
  expect(shown).toMatch(
    new RegExp(`^\\d{4}-\\S+Z info attempt started task_id=${id} attempt=1`, 'm'),
  );
  expect(shown).not.toContain('{"level"');
});
