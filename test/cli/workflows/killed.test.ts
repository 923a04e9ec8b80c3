import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { WorkflowView } from '../../../src/actors/workflows/workflow-view.ts';
import { openProject } from '../../support/cli.ts';
import {
  featureParts,
  isOver,
  type Part,
  researchParts,
  runner,
  scriptOf,
} from '../../support/workflows.ts';

type Project = ReturnType<typeof openProject>;

const open = (parts: readonly Part[]): Project => {
  const api = { backend: 'scripted', script: 'script.json' };
  const project = openProject({ workspace: { mode: 'worktree' }, api }, { ownServer: true });
  const script = { turn_ms: 60, ...scriptOf(parts) };
  writeFileSync(join(project.configFile, '..', 'script.json'), JSON.stringify(script));
  return project;
};

const json = async ({ agent }: Project, ...words: string[]) => {
  const { code, out, err } = await agent(...words, '--json');
  expect([code, code === 0 ? '' : err]).toEqual([0, '']);
  return JSON.parse(out);
};

/** Kills the server the first time that a state of a phase is seen, and goes on with a new one. */
const followWithKills = async (project: Project, id: string) => {
  const killed = new Set<string>();
  for (;;) {
    const view: WorkflowView = await json(project, 'workflow', 'show', id);
    if (isOver(view)) return { view, killed };
    const at = `${view.phase} ${view.state}`;
    if (killed.has(at)) {
      const mine = view.waits_for.find((each) => each.startsWith('a person: '));
      const [task] = /bd-\w+/.exec(mine ?? '') ?? [];
      if (task !== undefined) await project.agent('close', task);
      else await delay(20);
    } else {
      killed.add(at);
      await project.stopServer('SIGKILL');
    }
  }
};

test.each([
  {
    parts: featureParts,
    start: [
      ...['feature', 'Export', '--product', 'shop', '--verify', runner()],
      ...['--phase0', 'strategist,designer'],
    ],
    phases: ['0', '1', '2', '3', '4', '5'],
  },
  {
    parts: researchParts,
    start: ['research', 'Why is it slow?'],
    phases: ['1', '2', '3', '4', '5'],
  },
])(
  'a server that is killed in every phase of a $start.0 loses no workflow, and makes no task twice',
  {
    tags: ['slow'],
    timeout: 480_000,
  },
  async ({ parts, start, phases }) => {
    const project = open(parts);
    const { workflow_id } = await json(project, 'workflow', 'start', ...start);

    const { view, killed } = await followWithKills(project, workflow_id);

    expect([view.status, view.why]).toEqual(['complete', undefined]);
    expect([...new Set([...killed].map((at) => at.split(' ')[0]))]).toEqual(phases);
    const steps = view.phases.flatMap(({ tasks }) => tasks.map(({ step, round }) => [step, round]));
    const made = view.phases.flatMap(({ tasks }) => tasks.map(({ task_id }) => task_id));
    expect(steps.filter(([, round]) => round !== 1)).toEqual([]);
    expect(made).toHaveLength(new Set(made).size);
    const tasks: readonly { task_id: string; title: string }[] = await json(
      project,
      'list',
      '--all',
    );
    expect(tasks.map(({ task_id }) => task_id).sort()).toEqual([...made].sort());
    expect(new Set(tasks.map(({ title }) => title)).size).toBe(tasks.length);
    const replayed = await project.agent('replay', workflow_id);
    expect([replayed.code, replayed.err]).toEqual([0, '']);
    expect(replayed.out).toMatch(/workflow {2}complete {2}\(xstate\.done\.actor\.checkPhase\)\n$/);
  },
);
