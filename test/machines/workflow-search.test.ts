import { expect, test } from 'vitest';
import { workflowDefinitionSchema } from '../../src/machines/workflow/workflow-definition.ts';
import { searchWorkflow } from '../../src/machines/workflow/workflow-search.ts';

const step = (id: string, more: object = {}) => ({
  ...{ id, by: 'engineer', title: id, task: id },
  ...more,
});
const phase = (number: number, steps: readonly object[], more: object = {}) => ({
  ...{ number, name: `phase ${number}`, steps },
  ...more,
});
const gate = (...checks: readonly object[]) => ({ gates: [{ name: 'gate', checks }] });
const search = (...phases: readonly object[]) =>
  searchWorkflow(
    workflowDefinitionSchema.parse({ name: 'own', version: '1.0.0', description: 'x', phases }),
  ).deadEnd;

test('a workflow whose phases can all end has no dead end', () => {
  expect(
    search(
      phase(0, [step('idea', { when: 'unclear', ends_with: 'recommendation' })]),
      phase(1, [
        step('plan', { leaves: ['docs/plan/{{slug}}/'] }),
        step('say', { needs: ['plan'] }),
      ]),
      phase(
        2,
        [step('build', { ends_with: 'verdict' })],
        gate(
          { check: 'verdict', of: 'build' },
          { check: 'artifacts', of: 'plan' },
          { check: 'next_steps', of: 'plan', path: 'docs/plan/{{slug}}/a.md', section: 'x' },
          { check: 'only_changes', allowed: ['docs/'] },
        ),
      ),
    ),
  ).toBeNull();
});

test.each([
  [
    'steps that wait for each other',
    [phase(1, [step('a', { needs: ['b'] }), step('b', { needs: ['a'] })])],
    'its steps a, b wait for each other',
  ],
  [
    'a step that needs itself',
    [phase(1, [step('a', { needs: ['a'] }), step('b', { needs: ['a'] })])],
    'its step a needs itself',
  ],
  [
    'a step that needs an unknown one',
    [phase(1, [step('a', { needs: ['x'] })])],
    'its step a needs x, which is no step of this phase',
  ],
  [
    'a repeated step that is unknown',
    [phase(1, [step('a')], { repeat: ['x'] })],
    'it repeats x, which is no step of this phase',
  ],
  [
    'a check of a step that comes later',
    [phase(1, [step('a')], gate({ check: 'verdict', of: 'b' })), phase(2, [step('b')])],
    'its check verdict reads the work of b, and no step of this phase or one before has that id',
  ],
  [
    'a verdict that no step gives',
    [phase(1, [step('a')], gate({ check: 'verdict', of: 'a' }))],
    'its check verdict reads the results of a, which end with no verdict',
  ],
  [
    'a check of what a person does',
    [phase(1, [step('a', { by: 'person' })], gate({ check: 'artifacts', of: 'a' }))],
    'its check artifacts reads the work of a, which a person does: there is nothing to read',
  ],
  [
    'artifacts that no step leaves',
    [phase(1, [step('a')], gate({ check: 'artifacts', of: 'a' }))],
    'its check artifacts looks for what a leaves, and that step leaves nothing',
  ],
  [
    'a report that no step writes',
    [
      phase(
        1,
        [step('a', { leaves: ['docs/b.md'] })],
        gate({ check: 'answers', of: 'a', path: 'docs/b.md', questions: 'docs/c.md' }),
      ),
    ],
    'its check answers reads docs/c.md, and no step that is done before leaves it',
  ],
])('finds %s', (_, phases, why) => {
  expect(search(...phases)).toMatchObject({ phase: 1, why });
});

test('the way to a dead end is the shortest: here the choice that leaves a file out', () => {
  const found = search(
    phase(0, [
      step('notes', { when: 'asked', leaves: ['docs/notes.md'] }),
      step('other', { when: 'asked' }),
    ]),
    phase(1, [step('plan')]),
    phase(
      2,
      [step('report', { leaves: ['docs/report.md'] })],
      gate({ check: 'answers', of: 'report', path: 'docs/report.md', questions: 'docs/notes.md' }),
    ),
  );

  expect(found).toEqual({
    phase: 2,
    way: ['phase 0: of the optional steps none', 'phase 1: it passes'],
    why: 'its check answers reads docs/notes.md, and no step that is done before leaves it',
    path: ['phases', 2, 'gates', 0, 'checks', 0],
  });
});

test('it tries none of many optional steps, each alone, and all', () => {
  const many = Array.from({ length: 12 }, (_, n) => step(`s${n}`, { when: 'asked' }));

  const found = search(
    phase(0, many),
    phase(1, [step('last')], gate({ check: 'verdict', of: 's7' })),
  );

  expect(found).toMatchObject({
    phase: 1,
    way: ['phase 0: of the optional steps s7', 'phase 0: it passes'],
  });
});

const optional = (phases: number, steps: number) =>
  Array.from({ length: phases }, (_, p) =>
    phase(
      p,
      Array.from({ length: steps }, (_step, s) => step(`s${p}x${s}`, { when: 'it is so' })),
    ),
  );
const parse = (...phases: readonly object[]) =>
  workflowDefinitionSchema.parse({ name: 'own', version: '1.0.0', description: 'x', phases });

test('the choices of one phase do not multiply those of another one', () => {
  const small = searchWorkflow(parse(...optional(1, 6)));
  const large = searchWorkflow(parse(...optional(20, 6)));

  expect([large.deadEnd, large.isCut]).toEqual([null, false]);
  expect(large.states).toBeLessThanOrEqual(20 * small.states);
});

test('a choice that a later check reads is kept until then', () => {
  const [first = {}] = optional(1, 3);
  const read = phase(
    1,
    [step('last')],
    gate({ check: 'next_steps', of: 'last', path: 'docs/a.md', section: 'x' }),
  );
  const leaving = phase(0, [step('write', { when: 'it is so', leaves: ['docs/a.md'] })]);

  expect(search(leaving, first, read)).toMatchObject({
    phase: 1,
    way: expect.arrayContaining(['phase 0: of the optional steps none']),
  });
});

test('a search that would not end is cut, and proves nothing', { tags: ['slow'] }, () => {
  const steps = Array.from({ length: 18 }, (_, s) => [
    step(`s${s}`, { when: 'it is so', leaves: [`docs/${s}.md`] }),
  ]);
  const last = phase(
    19,
    [step('last')],
    gate(...steps.map((_, s) => ({ check: 'artifacts', of: `s${s}` }))),
  );

  const result = searchWorkflow(parse(...steps.map((each, s) => phase(s, each)), last));

  expect(result).toMatchObject({ deadEnd: null, isCut: true });
});
