import { rmSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';
import { openHub } from '../support/hub.ts';
import { endOfFile } from '../support/temporary.ts';

const atEnd = endOfFile();

test('list and ps --all-projects show the tasks of each project, with or without a server', async () => {
  const projects = [openProject(undefined, { atEnd }), openProject(undefined, { atEnd })];
  const { agentIn, hub } = openHub(atEnd, projects);
  expect((await agentIn(0, 'list', '--all-projects')).err).toContain('no project is known yet');
  const [one, two] = [
    (await agentIn(0, 'create', 'In the first')).out.trim(),
    (await agentIn(1, 'create', 'In the second')).out.trim(),
  ];
  for (const at of [0, 1]) await agentIn(at, 'server', 'start');
  await agentIn(1, 'server', 'stop');
  const known = JSON.parse((await hub('status', '--json')).out);
  const slugOf = (at: number): string =>
    known.find(({ project }: { project: string }) => project === projects[at]?.root).slug;

  const listed = JSON.parse((await agentIn(0, 'list', '--all-projects', '--json')).out);
  const table = (await agentIn(1, 'list', '--all-projects', '--status', 'queued')).out;
  const active = await agentIn(0, 'ps', '--all-projects', '--json');

  expect(listed.map(({ task_id, project }: Record<string, string>) => [task_id, project])).toEqual([
    [one, slugOf(0)],
    [two, slugOf(1)],
  ]);
  const [header, ...rows] = table.trim().split('\n');
  expect(header).toMatch(/^PROJECT +ID +STATUS/);
  expect(rows).toEqual([
    expect.stringMatching(new RegExp(`^${slugOf(0)} +${one} .*In the first$`)),
    expect.stringMatching(new RegExp(`^${slugOf(1)} +${two} .*In the second$`)),
  ]);
  expect([active.code, JSON.parse(active.out)]).toEqual([0, []]);
  expect((await agentIn(0, 'list', '--all-projects', '--status', 'nope')).code).toBe(2);

  writeFileSync(projects[1]?.configFile ?? '', 'no JSON');
  const broken = await agentIn(0, 'list', '--all-projects', '--json');
  expect([broken.code, JSON.parse(broken.out).length]).toEqual([1, 1]);
  expect(broken.err).toContain(`${slugOf(1)} cannot be read`);

  rmSync(projects[1]?.root ?? '', { recursive: true });
  expect((await agentIn(0, 'list', '--all-projects')).code).toBe(0);
});
