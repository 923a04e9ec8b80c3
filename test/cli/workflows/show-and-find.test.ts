import { expect, test } from 'vitest';
import { renderWorkflow } from '../../../src/cli/workflows/render-workflow.ts';
import { openProject } from '../../support/cli.ts';

const start = async (...words: readonly string[]) => {
  const project = openProject({ api: { backend: 'scripted' } });
  const { out } = await project.agent('workflow', 'start', ...words, '--json');
  return { project, id: JSON.parse(out).workflow_id as string };
};

test('a workflow fits a terminal of 80 columns', async () => {
  const { project, id } = await start('feature', 'Lists of values with commas between them');

  const { out } = await project.onTerminal('workflow', 'show', id);

  const lines = out.split('\n');
  expect(lines.filter((line) => line.length > 80)).toEqual([]);
  expect(out).toContain('product definition and architecture design, part 2:');
});

test('a beginning or an end of an id is enough to show and to cancel it', async () => {
  const { project, id } = await start('feature', 'Export');

  const shown = await project.agent('workflow', 'show', id.slice(3));
  const both = await project.agent('workflow', 'show', 'wf');
  const cancelled = await project.agent('workflow', 'cancel', id.slice(3));

  expect(shown.out).toContain(`${id} feature 1.0.0: Export\n`);
  expect(both.out).toBe(shown.out);
  expect(cancelled.out).toBe(`${id} cancelled\n`);
});

test('a workflow that is complete says how its work is taken, and which investigator did what', () => {
  const task = (task_id: string, step: string, round = 1) => ({
    ...{ task_id, step, round, status: 'complete' },
  });
  const text = renderWorkflow(
    {
      ...{ workflow_id: 'wf-a', kind: 'own', name: 'It', phase: 1, status: 'complete' },
      ...{ version: '1.0.0', state: 'complete', round: 1, waits_for: [], started_at: '' },
      phases: [
        {
          ...{ number: 1, name: 'one', state: 'passed', findings: [] },
          steps: [
            { id: 'look', by: 'architect' },
            { id: 'approve', by: 'person' },
          ],
          tasks: [task('bd-a', 'look'), task('bd-b', 'look'), task('bd-c', 'approve')],
        },
      ],
    },
    null,
  );

  expect(text.split('\n')).toEqual([
    'wf-a own 1.0.0: It',
    'complete',
    '  1  passed       one',
    '    bd-a look 1 of 2: complete',
    '    bd-b look 2 of 2: complete',
    '    bd-c approve: complete',
    'take its work with: agent merge bd-a bd-b',
  ]);
});

test('the shell completes workflows to start, and ids to show and to cancel', async () => {
  const { project, id } = await start('research', 'Why?');
  const complete = async (...words: readonly string[]) =>
    (await project.agent('__complete', '--', 'workflow', ...words, '')).out;

  expect(await complete('start')).toBe('feature\t\nresearch\t\n');
  expect(await complete('show')).toBe(`${id}\tresearch: Why?\n`);
  expect(await complete('cancel')).toBe(`${id}\tresearch: Why?\n`);
  expect(await complete('check')).toContain(':files');
});
