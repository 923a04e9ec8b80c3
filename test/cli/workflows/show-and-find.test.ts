import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
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

test('a reason of several lines is one line of explain and of show', async () => {
  const { project, id } = await start('feature', 'Export');
  await project.agent('workflow', 'cancel', id, '--reason', '- no money\n- no time');

  const explained = await project.agent('explain', id);
  const shown = await project.agent('workflow', 'show', id);

  expect(explained.out).toContain('  because - no money - no time\n');
  expect(shown.out).toContain('cancelled: - no money - no time\n');
});

test('a step that was chosen at the start says where', async () => {
  const { agent } = openProject({ api: { backend: 'scripted' } });

  const { out } = await agent('workflow', 'start', 'feature', 'It', '--phase0', 'architect');

  expect(out).toContain('    designer: no (start: not named in --phase0)\n');
  expect(out).toContain('    architect: yes (start: named in --phase0)\n');
});

test('the list ends with those that are not over, and says that there are older ones', async () => {
  const { project, id } = await start('feature', 'Export');
  const others: string[] = [];
  for (const name of ['One?', 'Two?']) {
    const { out } = await project.agent('workflow', 'start', 'research', name, '--json');
    others.push(JSON.parse(out).workflow_id);
    await project.agent('workflow', 'cancel', others.at(-1) ?? '');
  }

  const listed = await project.agent('workflow', 'list', '--limit', '1');
  const every = await project.onTerminal('workflow', 'list');

  const ids = ({ out }: { readonly out: string }) => out.match(/^wf-\w+/gm);
  expect(ids(listed)).toEqual([others[1], id]);
  expect(listed.err).toContain('there are older; see: agent workflow list --all\n');
  expect([ids(every), every.err]).toEqual([[...others, id], '']);
});

test('a workflow that is complete says how its work is taken, and which investigator did what', () => {
  const task = (task_id: string, step: string, round = 1) => ({
    ...{ task_id, step, round, status: 'complete' },
  });
  const text = renderWorkflow(
    {
      ...{ workflow_id: 'wf-a', kind: 'own', name: 'It', phase: 1, status: 'complete' },
      ...{ version: '1.0.0', state: 'complete', round: 1, waits_for: [], started_at: '' },
      ...{ verify: [], reports: [] },
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

test('a workflow that failed says how the work of the phases that passed is taken', () => {
  const phase = (number: number, state: 'passed' | 'not_passed') => ({
    ...{ number, state, name: 'one', findings: [], steps: [{ id: `s${number}`, by: 'engineer' }] },
    tasks: [{ task_id: `bd-${number}`, step: `s${number}`, round: 1, status: 'complete' }],
  });

  const text = renderWorkflow(
    {
      ...{ workflow_id: 'wf-a', kind: 'own', name: 'It', phase: 2, status: 'failed', why: 'no' },
      ...{ version: '1.0.0', state: 'failed', round: 3, waits_for: [], started_at: '' },
      ...{ verify: [], reports: [] },
      phases: [phase(1, 'passed'), phase(2, 'not_passed')],
    },
    null,
  );

  expect(text.split('\n').slice(-2)).toEqual([
    'take the work of the phases that passed with: agent merge bd-1',
    'to go on: agent workflow retry wf-a',
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

const own = `name: mend
version: 1.0.0
description: One step.
phases:
  - { number: 1, name: one, steps: [{ id: mend, by: engineer, title: "Mend {{name}}", task: Do it. }] }
`;
const writeOwn = (configFile: string): void => {
  mkdirSync(join(dirname(configFile), 'workflows'));
  writeFileSync(join(dirname(configFile), 'workflows', 'mend.yml'), own);
};

test('a workflow beside the named configuration is found by start, check and the shell', async () => {
  const { agent, configFile } = openProject({ api: { backend: 'scripted' } });
  const none = await agent('workflow', 'start', 'mend', 'It');
  writeOwn(configFile);

  const checked = await agent('workflow', 'check', 'mend');
  const completed = await agent('__complete', '--', 'workflow', 'start', 'm');
  const started = await agent('workflow', 'start', 'mend', 'It');

  expect(none.err).toContain(
    `"mend" is no workflow; there are feature, research; yours are looked for in ${join(dirname(configFile), 'workflows')} and `,
  );
  expect(checked.out).toContain('mend 1.0.0: its phase can end');
  expect(completed.out).toContain('mend\t');
  expect(started.out).toContain('mend 1.0.0: It');
});

test('a workflow beside a configuration of the project is none: a project may only narrow', async () => {
  const { agent, root } = openProject({ api: { backend: 'scripted' } });
  const config = join(root, 'server.json');
  writeFileSync(config, JSON.stringify({ server: { port: 0 }, api: { backend: 'scripted' } }));
  writeOwn(config);

  const started = await agent('workflow', 'start', 'mend', 'It', '--config', config);

  expect(started.err).toContain('"mend" is no workflow; there are feature, research;');
});
