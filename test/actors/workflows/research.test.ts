import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../support/temporary.ts';
import {
  isOver,
  researchParts as parts,
  startWithParts,
  untilWorkflow,
  wholeWorkflowMs,
} from '../../support/workflows.ts';

const start = { kind: 'research', name: 'Why is it slow?' } as const;

for (const { thoroughness, investigators } of [
  { thoroughness: 'quick', investigators: 1 },
  { thoroughness: 'medium', investigators: 2 },
  { thoroughness: 'deep', investigators: 4 },
] as const)
  test(`a ${thoroughness} research has ${investigators} investigators side by side, and ends with a report that was checked`, {
    tags: ['slow'],
    timeout: wholeWorkflowMs,
  }, async () => {
    const running = await startWithParts(parts);

    const { workflow_id } = await running.system.workflows.start({ ...start, thoroughness });
    const end = await untilWorkflow(running, workflow_id, isOver);

    expect([end.status, end.why]).toEqual(['complete', undefined]);
    const investigations = end.phases[2]?.tasks ?? [];
    expect(investigations).toHaveLength(investigators);
    const views = await Promise.all(
      investigations.map(({ task_id }) => running.service.status(task_id)),
    );
    const ids = investigations.map(({ task_id }) => task_id);
    expect(views.some(({ dependencies }) => dependencies.some((id) => ids.includes(id)))).toBe(
      false,
    );
    expect(
      end.phases[4]?.findings.map(({ gate, check, passed }) => `${gate}, ${check} ${passed}`),
    ).toEqual([
      'steps, artifacts true',
      ...['sections', 'answers', 'findings', 'next_steps'].map((check) => `report, ${check} true`),
      'no code changes, only_changes true',
    ]);
  });

test('a research that changes code does not pass, and says what it changed', {
  tags: ['slow'],
  timeout: wholeWorkflowMs,
}, async () => {
  const [objectives, ...rest] = parts;
  const running = await startWithParts([
    { title: 'Objectives', writes: { ...objectives?.writes, 'src/a.js': 'mended' } },
    ...rest,
  ]);

  const { workflow_id } = await running.system.workflows.start(start);
  const end = await untilWorkflow(running, workflow_id, isOver);

  expect(end.status).toBe('failed');
  expect(end.why).toMatch(
    /no code changes, only_changes: the diff of bd-\w+ changes src\/a\.js; allowed is docs\/research\//,
  );
});

test('a code change of an earlier round counts until it is undone', {
  tags: ['slow'],
  timeout: wholeWorkflowMs,
}, async () => {
  const objectives = 'docs/research/why-is-it-slow/objectives.md';
  const said = parts[0]?.writes?.[objectives] ?? '';
  const running = await startWithParts([
    { title: 'Objectives: Why is it slow? (round 3)', writes: { 'a.txt': 'one\ntwo\nthree\n' } },
    {
      title: 'Objectives: Why is it slow? (round 2)',
      writes: { [objectives]: `${said}\nMore.\n` },
    },
    { title: 'Objectives', writes: { [objectives]: said, 'a.txt': 'mended' } },
    ...parts.slice(1),
  ]);

  const { workflow_id } = await running.system.workflows.start(start);
  const second = await untilWorkflow(
    running,
    workflow_id,
    ({ round, phases }) => round === 3 || phases[0]?.state !== 'active',
  );
  const end = await untilWorkflow(running, workflow_id, (view) => isOver(view) || view.phase > 1);

  expect(second.phases[0]?.findings.filter(({ passed }) => !passed)).toMatchObject([
    { check: 'only_changes', says: expect.stringContaining('changes a.txt') },
  ]);
  expect(end.phases[0]?.findings.map(({ check, passed }) => [check, passed])).toEqual([
    ['artifacts', true],
    ['only_changes', true],
  ]);
});

test('a workflow of your own, beside your configuration, runs like ours', {
  tags: ['slow'],
  timeout: wholeWorkflowMs,
}, async () => {
  const stateDir = temporaryFolder();
  mkdirSync(join(stateDir, 'workflows'));
  const own = `name: own
version: 0.1.0
description: Mine.
phases:
  - number: 1
    name: one
    steps:
      - { id: note, by: engineer, title: "Note on {{name}}", task: Write it., leaves: [notes/] }
      - { id: look, by: person, title: Look at it, task: Look., needs: [note] }
`;
  writeFileSync(join(stateDir, 'workflows', 'own.yml'), own);
  writeFileSync(join(stateDir, 'workflows', 'stuck.yml'), own.replace('[note]', '[nothing]'));
  const running = await startWithParts([{ title: 'Note', writes: { 'notes/a.md': 'x' } }], {
    stateDir,
  });
  const { system, service } = running;

  const { workflow_id } = await system.workflows.start({ kind: 'own', name: 'It' });
  const waiting = await untilWorkflow(running, workflow_id, ({ waits_for }) =>
    waits_for.join().includes('a person'),
  );
  await service.close(
    waiting.phases[0]?.tasks.find(({ step }) => step === 'look')?.task_id ?? '',
    null,
  );
  const end = await untilWorkflow(running, workflow_id, isOver);

  expect(end.status).toBe('complete');
  await expect(system.workflows.start({ kind: 'stuck', name: 'x' })).rejects.toThrow(
    `kind: cannot be used: ${join(stateDir, 'workflows', 'stuck.yml')}: line 9: phase 1 cannot end: its step look needs nothing`,
  );
});
