import { expect, test } from 'vitest';
import { workflowFinder } from '../../../src/cli/workflows/find-workflow.ts';
import type { WorkflowDefinition } from '../../../src/machines/workflow/workflow-definition.ts';

/** The clauses of SPEC.md, part 1, that are data in the shipped definitions, word by word. */
const shipped = (name: string): WorkflowDefinition => {
  const found = workflowFinder(['/nowhere/config.json'], '/nowhere')(name);
  if (typeof found === 'string') throw new Error(found);
  return found.definition;
};
const [feature, research] = [shipped('feature'), shipped('research')];
const stepsIn = ({ phases }: WorkflowDefinition, number: number) =>
  phases.filter((phase) => phase.number === number).flatMap(({ steps }) => steps);
const phaseNames = ({ phases }: WorkflowDefinition) => [
  ...new Set(phases.map(({ number, name }) => `${number} ${name.replace(/, part \d.*/, '')}`)),
];
const gatesOf = ({ phases }: WorkflowDefinition) => phases.flatMap(({ gates }) => gates);

test('both workflows extend a standard workflow, in version 1.0.0', () => {
  for (const each of [feature, research])
    expect([each.extends, each.version]).toEqual(['standard', '1.0.0']);
});

test('the feature workflow has phases 0 to 4, and the rollout after them', () => {
  expect(phaseNames(feature)).toEqual([
    '0 product definition and architecture design',
    '1 discovery and scoping',
    '2 design and planning',
    '3 implementation',
    '4 validation and documentation',
    '5 rollout',
  ]);
});

test('phase 0 delegates to five steps, each only under its selection criterion', () => {
  const steps = stepsIn(feature, 0);

  expect(steps.map(({ id }) => id)).toEqual([
    'strategist',
    'archaeologist',
    'product-manager',
    'designer',
    'architect',
  ]);
  expect(steps.filter(({ when }) => when === undefined)).toEqual([]);
});

test('the recommendation of the strategist alone may stop the workflow', () => {
  const all = feature.phases.flatMap(({ steps }) => steps);

  expect(all.filter((step) => step.ends_with === 'recommendation').map(({ id }) => id)).toEqual([
    'strategist',
  ]);
});

test('planning artifacts have the paths of the specification', () => {
  const leaves = (id: string) =>
    feature.phases.flatMap(({ steps }) => steps).find((step) => step.id === id)?.leaves;

  expect(leaves('strategist')).toEqual(['docs/market/{{product}}/']);
  expect(leaves('product-manager')).toEqual(['docs/product/{{slug}}/']);
  expect(leaves('designer')).toEqual(['docs/design/{{slug}}/', 'docs/design/{{slug}}/wireframes/']);
  expect(leaves('architect')).toEqual(['docs/architecture/{{slug}}/', 'docs/adr/']);
  expect(leaves('plan')).toEqual(['docs/architecture/{{slug}}/plan.md', 'docs/adr/']);
});

test('the named gates are design, implementation, documentation and deployment readiness', () => {
  expect(gatesOf(feature).map(({ name }) => name)).toEqual([
    'design',
    'implementation',
    'documentation',
    'deployment readiness',
  ]);
});

test('unit tests cover at least 90 %, by a report; integration, acceptance and performance tests are reviewed', () => {
  const checks = gatesOf(feature).flatMap((gate) => gate.checks);
  const task = (id: string) =>
    feature.phases.flatMap(({ steps }) => steps).find((step) => step.id === id)?.task ?? '';

  expect(checks.find(({ check }) => check === 'coverage')).toMatchObject({ minimum: 90 });
  expect(task('test')).toMatch(/90 % of the business logic/);
  expect(task('review')).toMatch(/interaction of components must have an integration test/);
  expect(task('documentation-review')).toMatch(/user story .* must have an acceptance test/);
  expect(task('documentation-review')).toMatch(/performance requirement\s+a performance test/);
});

test('the rollout stages are those of the specification, one after another, by a person', () => {
  const stages = stepsIn(feature, 5);

  expect(stages.map(({ title }) => title.replace('Rollout of {{name}}: ', ''))).toEqual([
    'internal testing',
    'beta subset',
    '10 %',
    '50 %',
    '100 %',
    'full deployment',
    'flag removal',
  ]);
  expect(new Set(stages.map(({ by }) => by))).toEqual(new Set(['person']));
  expect(stages.map(({ needs }) => needs)).toEqual([
    [],
    ...stages.slice(0, -1).map(({ id }) => [id]),
  ]);
});

test('the research workflow has phases 1 to 5 and the levels quick, medium and deep', () => {
  expect(phaseNames(research)).toEqual([
    '1 research objectives',
    '2 exploration strategy',
    '3 investigation',
    '4 knowledge synthesis',
    '5 documentation and recommendations',
  ]);
  expect(Object.keys(research.thoroughness ?? {})).toEqual(['quick', 'medium', 'deep']);
});

test('a research changes no code: every phase has the check', () => {
  for (const { gates } of research.phases)
    expect(gates.flatMap(({ checks }) => checks)).toContainEqual({
      check: 'only_changes',
      allowed: ['docs/research/'],
    });
});

test('a report has its six sections, answers every question, has evidence and names next steps', () => {
  const checks = gatesOf(research)
    .filter(({ name }) => name === 'report')
    .flatMap((gate) => gate.checks);

  expect(checks.map(({ check }) => check)).toEqual([
    'sections',
    'answers',
    'findings',
    'next_steps',
  ]);
  expect(checks[0]).toMatchObject({
    sections: [
      'summary',
      'objectives',
      'key findings',
      'detailed findings',
      'recommendations',
      'references',
    ],
  });
});
