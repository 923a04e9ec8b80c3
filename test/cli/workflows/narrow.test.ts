import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { workflowFinder } from '../../../src/cli/workflows/find-workflow.ts';
import type { WorkflowDefinition } from '../../../src/machines/workflow/workflow-definition.ts';
import type { FoundWorkflow } from '../../../src/machines/workflow/workflow-narrowing.ts';
import { openProject } from '../../support/cli.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const projectWith = (text: string, name = 'feature'): string => {
  const root = temporaryFolder();
  mkdirSync(join(root, '.agent', 'workflows'), { recursive: true });
  writeFileSync(join(root, '.agent', 'workflows', `${name}.yml`), text);
  return root;
};
const find = (root: string, name = 'feature') =>
  workflowFinder([join(temporaryFolder(), 'config.json')], root)(name);
const findIn = (text: string, name?: string): FoundWorkflow => {
  const found = find(projectWith(text, name), name);
  if (typeof found === 'string') throw new Error(found);
  return found;
};
const checksOf = ({ phases }: WorkflowDefinition) =>
  phases.flatMap(({ gates }) => gates.flatMap(({ checks }) => checks));

test('a project leaves out optional steps and asks for more', () => {
  const found = findIn(`narrows: feature
without: [designer, strategist]
rounds: 2
coverage: 95
tests: 20
leaves:
  scope: ["docs/product/{{slug}}/risks.md"]
`);

  const { phases, ...narrowed } = found.definition;
  const steps = phases.flatMap((phase) => phase.steps);
  expect(found.narrowed).toEqual({
    file: '.agent/workflows/feature.yml',
    without: ['designer', 'strategist'],
    changes: [
      'without designer, strategist',
      'at most 2 rounds of each phase',
      'at least 95 % coverage',
      'at least 20 passed tests',
      'scope leaves docs/product/{{slug}}/risks.md as well',
    ],
  });
  expect(new Set(phases.map(({ rounds }) => rounds))).toEqual(new Set([2]));
  expect(
    checksOf({ ...narrowed, phases }).flatMap((check) =>
      'minimum' in check ? [[check.check, check.minimum]] : [],
    ),
  ).toEqual([
    ['coverage', 95],
    ['tests', 20],
    ['tests', 20],
  ]);
  expect(steps.find(({ id }) => id === 'scope')?.leaves).toEqual([
    'docs/product/{{slug}}/scope.md',
    'docs/product/{{slug}}/risks.md',
  ]);
});

test('a project bounds the investigators and turns of a research', () => {
  const { thoroughness } = findIn(
    'narrows: research\ninvestigators: 2\nmax_turns: 20\n',
    'research',
  ).definition;

  expect(thoroughness).toEqual({
    quick: { investigators: 1, max_turns: 15 },
    medium: { investigators: 2, max_turns: 20 },
    deep: { investigators: 2, max_turns: 20 },
  });
});

test.each([
  ['coverage: 80', 'line 2: coverage: is 80, less than the 90 of feature'],
  ['tests: 0', 'line 2: tests: expected'],
  ['rounds: 9', 'line 2: rounds: is 9, more than the 3 of feature'],
  ['max_turns: 900', 'line 2: max_turns: is 900, but feature has no such bound'],
  ['without: [scope]', 'line 2: without: entry 1: is scope, no optional step of feature'],
  ['leaves: { other: [x] }', 'line 2: leaves: other: names no step of an agent of feature'],
  [
    'leaves: { flag-removal: [x] }',
    'line 2: leaves: flag-removal: names no step of an agent of feature',
  ],
  [
    'leaves: { scope: [../x] }',
    'line 2: leaves: scope: entry 1: must be a path inside the project',
  ],
  ['verify: [rm -rf /]', 'line 2: verify: is not known here'],
  ['phases: []', 'line 2: phases: is not known here'],
  ['gates: []', 'line 2: gates: is not known here'],
])('a file that widens is refused with its line: %s', async (line, problem) => {
  const project = openProject({ api: { backend: 'scripted' } });
  const file = join(project.root, '.agent', 'workflows', 'feature.yml');
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, `narrows: feature\n${line}\n`);

  const checked = await project.agent('workflow', 'check', '.agent/workflows/feature.yml');

  expect([checked.code, checked.out]).toEqual([1, expect.stringContaining(`${file}: ${problem}`)]);
  expect(find(project.root)).toContain(`cannot be used: ${file}: ${problem}`);
});

test('start, show and check say who narrowed what; a step that is left out cannot be named', async () => {
  const { agent, root } = openProject({ api: { backend: 'scripted' } });
  mkdirSync(join(root, '.agent', 'workflows'), { recursive: true });
  // The designer needs the product-manager.
  const text = 'narrows: feature\nwithout: [strategist, product-manager]\nrounds: 1\n';
  writeFileSync(join(root, '.agent', 'workflows', 'feature.yml'), text);
  const changes = 'without strategist, product-manager; at most 1 round of each phase';

  const started = await agent('workflow', 'start', 'feature', 'Export');
  const named = await agent('workflow', 'start', 'feature', 'Export', '--phase0', 'strategist');
  const checked = await agent('workflow', 'check', 'feature');
  const both = await agent('workflow', 'check', '.agent/workflows/feature.yml');

  expect(started.out).toContain(`narrowed by .agent/workflows/feature.yml: ${changes}\n`);
  expect(started.out).toContain(
    'strategist: no (project: .agent/workflows/feature.yml leaves it out)',
  );
  expect(started.out).toContain('Is the step archaeologist needed for Export?');
  expect(started.out).not.toContain('Is the step product-manager');
  expect(named.err).toContain(
    '--phase0: has strategist, which .agent/workflows/feature.yml leaves out',
  );
  for (const { code, out } of [checked, both]) {
    expect(code).toBe(0);
    expect(out).toContain('feature.yml: feature 1.0.0: each of its 7 phases can end');
    expect(out).toMatch(/\nnarrowed by .*\/\.agent\/workflows\/feature\.yml: without strategist/);
  }
});

test('a project that widens starts no workflow, and one of another name is not read', async () => {
  const project = openProject({ api: { backend: 'scripted' } });
  mkdirSync(join(project.root, '.agent', 'workflows'), { recursive: true });
  writeFileSync(join(project.root, '.agent', 'workflows', 'feature.yml'), 'narrows: research\n');

  const refused = await project.agent('workflow', 'start', 'feature', 'Export');
  const started = await project.agent('workflow', 'start', 'research', 'Why?', '--json');

  expect([refused.code, refused.err]).toEqual([
    2,
    expect.stringContaining('line 1: narrows: is research, not feature'),
  ]);
  expect(started.code).toBe(0);
});

test('links, pipes and large files of a repository are refused', () => {
  const own = join(projectWith('narrows: feature\n'), '.agent', 'workflows');
  const linked = temporaryFolder();
  mkdirSync(join(linked, '.agent'));
  symlinkSync(own, join(linked, '.agent', 'workflows'));
  const file = temporaryFolder();
  mkdirSync(join(file, '.agent', 'workflows'), { recursive: true });
  symlinkSync('/dev/zero', join(file, '.agent', 'workflows', 'feature.yml'));

  expect(find(linked)).toContain('is behind a symbolic link');
  expect(find(file)).toContain('is a symbolic link');
  expect(find(projectWith(`# ${'x'.repeat(300_000)}`))).toContain('more than 65536');
});
