import fc from 'fast-check';
import { expect, test } from 'vitest';
import { initialTransition, transition } from 'xstate';
import {
  openChoices,
  phaseOf,
  stepsOfRound,
} from '../../src/machines/workflow/workflow-context.ts';
import {
  type WorkflowDefinition,
  workflowDefinitionSchema,
} from '../../src/machines/workflow/workflow-definition.ts';
import {
  type WorkflowSnapshot,
  workflowMachine,
} from '../../src/machines/workflow/workflow-machine.ts';
import {
  narrowWorkflow,
  type WorkflowNarrowing,
  workflowNarrowingSchema,
} from '../../src/machines/workflow/workflow-narrowing.ts';

const phaseShape = fc.record({
  steps: fc.array(
    fc.record({ isOptional: fc.boolean(), needsFirst: fc.boolean(), leaves: fc.boolean() }),
    { minLength: 1, maxLength: 3 },
  ),
  rounds: fc.integer({ min: 1, max: 2 }),
  repeatsLast: fc.boolean(),
  minimum: fc.integer({ min: 0, max: 100 }),
});
const definitions = fc.array(phaseShape, { minLength: 1, maxLength: 2 }).map((shapes) =>
  workflowDefinitionSchema.parse({
    ...{ name: 'own', version: '1.0.0', description: 'x' },
    phases: shapes.map(({ steps, rounds, repeatsLast, minimum }, at) => ({
      ...{ number: at, name: 'p', rounds },
      ...(repeatsLast ? { repeat: [`s${at}x${steps.length - 1}`] } : {}),
      steps: steps.map(({ isOptional, needsFirst, leaves }, n) => ({
        ...{ id: `s${at}x${n}`, by: 'engineer', title: 't', task: 't' },
        ...(isOptional ? { when: 'it is so' } : {}),
        ...(needsFirst && n > 0 ? { needs: [`s${at}x0`] } : {}),
        ...(leaves ? { leaves: [`docs/${n}.md`] } : {}),
      })),
      gates: [
        {
          name: 'g',
          checks: [
            { check: 'coverage', of: `s${at}x0`, minimum, reports: ['a'] },
            { check: 'tests', of: `s${at}x0`, reports: ['b'] },
          ],
        },
      ],
    })),
  }),
);
const narrowings = fc.record({
  without: fc.uniqueArray(fc.constantFrom('s0x0', 's0x1', 's0x2', 's1x0', 's1x1'), {
    maxLength: 3,
  }),
  rounds: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
  coverage: fc.option(fc.integer({ min: 0, max: 100 }), { nil: undefined }),
  tests: fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined }),
  leaves: fc.constantFrom<Record<string, string[]>>({}, { s0x0: ['more.md'] }),
});

const begin = (definition: WorkflowDefinition, without: readonly string[]): WorkflowSnapshot =>
  initialTransition(workflowMachine, {
    ...{ workflowId: 'wf-a', definition, verify: [], model: null, decides: 'person' },
    subject: { name: 'x', slug: 'x', product: 'x', thoroughness: 'medium' },
    choices: without.map((step) => ({ step, selected: false, by: 'project', reason: '' })),
    startedAt: 0,
  })[0];
const after = (snapshot: WorkflowSnapshot, actor: string, output: unknown): WorkflowSnapshot => {
  const event = { type: `xstate.done.actor.${actor}`, output, actorId: actor };
  return transition(workflowMachine, snapshot, event as never)[0];
};
const verdict = (passed: boolean) => ({
  findings: [{ gate: 'g', check: 'c', passed, says: '' }],
  stop: null,
});
/** What may be answered in a state. */
const answers = (snapshot: WorkflowSnapshot): readonly (readonly [string, unknown])[] => {
  const { value, context } = snapshot;
  if (typeof value === 'string') return [];
  const say = (selected: boolean) =>
    openChoices(context).map(({ id: step }) => ({ step, selected, by: 'person', reason: '' }));
  const all: Readonly<Record<string, readonly (readonly [string, unknown])[]>> = {
    asking: [['askQuestions', []]],
    choosing: [
      ['awaitAnswers', say(true)],
      ['awaitAnswers', say(false)],
    ],
    creating: [['createTasks', []]],
    working: [['awaitTasks', undefined]],
    checking: [
      ['checkPhase', verdict(true)],
      ['checkPhase', verdict(false)],
    ],
  };
  return all[String(value.active)] ?? [];
};
const shown = ({ value, context }: WorkflowSnapshot) => ({
  ...{ value, phase: context.phase, round: context.round },
  steps: stepsOfRound(context).map(({ id }) => id),
});

/** Plays each way through the narrowed chart on the original one too. */
const expectSameWays = (
  narrow: WorkflowSnapshot,
  original: WorkflowSnapshot,
  seen = new Set<string>(),
): void => {
  const key = JSON.stringify([shown(narrow), narrow.context.choices]);
  if (seen.has(key)) return;
  seen.add(key);
  for (const [actor, output] of answers(narrow)) {
    const [next, other] = [after(narrow, actor, output), after(original, actor, output)];
    // Fewer rounds: it may end sooner, and only as failed.
    if (next.value === 'failed' && other.value !== 'failed') {
      expect(narrow.context.round).toBe(phaseOf(narrow.context).rounds);
      continue;
    }
    expect(shown(next)).toEqual(shown(other));
    expectSameWays(next, other, seen);
  }
};

const checksOf = ({ phases }: WorkflowDefinition) =>
  phases.flatMap(({ gates }) => gates.flatMap(({ checks }) => checks));

test('each way through a narrowed workflow is a way through the original, and each of its checks is as strict', () => {
  let narrowed = 0;
  fc.assert(
    fc.property(definitions, narrowings, (definition, given) => {
      const narrowing: WorkflowNarrowing = workflowNarrowingSchema.parse({
        narrows: 'own',
        ...given,
      });
      const answer = narrowWorkflow(definition, narrowing);
      fc.pre(answer.ok);
      narrowed += 1;
      const { definition: narrow, without } = answer.value;

      const [before, now] = [checksOf(definition), checksOf(narrow)];
      expect(now.map((check) => ({ ...check, minimum: 0 }))).toEqual(
        before.map((check) => ({ ...check, minimum: 0 })),
      );
      for (const [at, check] of now.entries()) {
        const own = before[at];
        if ('minimum' in check && own !== undefined && 'minimum' in own)
          expect(check.minimum).toBeGreaterThanOrEqual(own.minimum);
      }
      for (const [at, { steps }] of narrow.phases.entries())
        for (const [n, { leaves }] of steps.entries())
          expect(leaves).toEqual(
            expect.arrayContaining([...(definition.phases[at]?.steps[n]?.leaves ?? [])]),
          );
      expectSameWays(begin(narrow, without), begin(definition, without));
    }),
    { numRuns: 60 },
  );
  expect(narrowed).toBe(60);
});
