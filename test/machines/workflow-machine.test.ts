import { describe, expect, test } from 'vitest';
import { initialTransition, transition } from 'xstate';
import type { TaskId } from '../../src/machines/task.ts';
import {
  type CheckReport,
  inputAfter,
  phaseOf,
  stepsOfRound,
  type WorkflowInput,
} from '../../src/machines/workflow/workflow-context.ts';
import {
  type WorkflowDefinition,
  workflowDefinitionSchema,
} from '../../src/machines/workflow/workflow-definition.ts';
import {
  type WorkflowSnapshot,
  workflowMachine,
} from '../../src/machines/workflow/workflow-machine.ts';
import { broken, done, nodesOf, pathOf } from './chart.ts';

const step = (id: string, more: object = {}) => ({
  ...{ id, by: 'engineer', title: id, task: id },
  ...more,
});
const definition = (phases: readonly object[]): WorkflowDefinition =>
  workflowDefinitionSchema.parse({ name: 'own', version: '1.0.0', description: 'x', phases });
const twoPhases = definition([
  { number: 1, name: 'one', steps: [step('a'), step('b', { when: 'b is needed' })], rounds: 2 },
  { number: 2, name: 'two', steps: [step('c')] },
]);

const input = (own: WorkflowDefinition): WorkflowInput => ({
  workflowId: 'wf-a1',
  definition: own,
  subject: { name: 'Export', slug: 'export', product: 'shop', thoroughness: 'medium' },
  ...{ verify: [], model: null, decides: 'person', choices: [], startedAt: 1 },
});
const begin = (own: WorkflowDefinition): WorkflowSnapshot =>
  initialTransition(workflowMachine, input(own))[0];
const after = (snapshot: WorkflowSnapshot, ...events: readonly object[]): WorkflowSnapshot =>
  events.reduce<WorkflowSnapshot>(
    (now, event) => transition(workflowMachine, now, event as never)[0],
    snapshot,
  );

const good: CheckReport = {
  findings: [{ gate: 'g', check: 'c', passed: true, says: 'is there' }],
  stop: null,
};
const bad: CheckReport = {
  findings: [{ gate: 'g', check: 'c', passed: false, says: 'is not there' }],
  stop: null,
};
const chosen = (selected: boolean) =>
  done('awaitAnswers', [{ step: 'b', selected, by: 'person', reason: 'so' }]);
const task = { taskId: 'bd-1' as TaskId, phase: 0, round: 1, step: 'a', copy: 1 };
const round = (report: CheckReport) => [
  done('createTasks', [task]),
  done('awaitTasks'),
  done('checkPhase', report),
];
const asked = [done('askQuestions', []), chosen(false)];

test('a phase with an open question asks it before it makes tasks, and keeps who answered', () => {
  const first = begin(twoPhases);

  const answered = after(first, done('askQuestions', []), chosen(true));

  expect(pathOf(first)).toBe('active.asking');
  expect(pathOf(answered)).toBe('active.creating');
  expect(answered.context.choices).toEqual([
    { step: 'b', selected: true, by: 'person', reason: 'so' },
  ]);
});

test('each phase that passes leads to the next one, and the last one to the end', () => {
  const second = after(begin(twoPhases), ...asked, ...round(good));
  const end = after(second, ...round(good));

  expect([pathOf(second), second.context.phase, second.context.round]).toEqual([
    'active.creating',
    1,
    1,
  ]);
  expect(end.context.tasks).toEqual([task, task]);
  expect([end.value, end.status]).toEqual(['complete', 'done']);
});

test('work that does not pass goes back, at most as often as the phase has rounds; then it failed, and says why', () => {
  const again = after(begin(twoPhases), ...asked, ...round(bad));
  const failed = after(again, ...round(bad));

  expect([pathOf(again), again.context.phase, again.context.round]).toEqual([
    'active.creating',
    0,
    2,
  ]);
  expect(again.context.reports).toEqual([{ phase: 0, report: bad }]);
  expect(failed.value).toBe('failed');
  expect(failed.context.why).toBe('phase 1 did not pass in 2 of 2 rounds: g, c: is not there');
});

test('a second round that passes goes on', () => {
  const next = after(begin(twoPhases), ...asked, ...round(bad), ...round(good));

  expect([next.context.phase, next.context.round]).toEqual([1, 1]);
  expect(next.context.reports).toEqual([{ phase: 0, report: good }]);
});

const again = (ended: WorkflowSnapshot): WorkflowSnapshot =>
  initialTransition(workflowMachine, inputAfter(ended.context, 'wf-b2', 2))[0];

test('after a phase that did not pass a retry goes on with its next round, and has its rounds again', () => {
  const failed = after(begin(twoPhases), ...asked, ...round(bad), ...round(bad));

  const retried = again(failed);

  expect([pathOf(retried), retried.context.phase, retried.context.round]).toEqual([
    'active.creating',
    0,
    3,
  ]);
  expect(retried.context).toMatchObject({ workflowId: 'wf-b2', tasks: [task, task], why: null });
  expect(phaseOf(retried.context).rounds).toBe(4);
  expect(after(retried, ...round(good)).context).toMatchObject({ phase: 1, round: 1 });
  expect(after(retried, ...round(bad), ...round(bad)).value).toBe('failed');
});

test('after a cancel in the middle of a phase a retry begins that phase anew', () => {
  const inSecond = after(begin(twoPhases), ...asked, ...round(good));
  const cancelled = after(
    inSecond,
    done('createTasks', [{ ...task, phase: 1, step: 'c' }]),
    { type: 'cancel', reason: null },
    done('cancelTasks'),
  );

  const retried = again(cancelled);

  expect(cancelled.value).toBe('cancelled');
  expect(pathOf(retried)).toBe('active.creating');
  expect(retried.context).toMatchObject({ phase: 1, round: 1, tasks: [task] });
  expect(after(retried, ...round(good)).value).toBe('complete');
});

test('a recommendation to defer stops it', () => {
  const stopped = after(
    begin(twoPhases),
    ...asked,
    ...round({ findings: [], stop: 'DEFER: nobody asks for it' }),
  );

  expect([stopped.value, stopped.context.why]).toEqual(['stopped', 'DEFER: nobody asks for it']);
});

test('phases of which nothing is chosen are passed over, also at the end', () => {
  const optional = (id: string) => ({ number: 1, name: id, steps: [step(id, { when: 'asked' })] });
  const own = definition([optional('a'), optional('b')]);
  const no = (id: string) => [
    done('askQuestions', []),
    done('awaitAnswers', [{ step: id, selected: false, by: 'person', reason: '' }]),
  ];

  const second = after(begin(own), ...no('a'));
  const end = after(second, ...no('b'));

  expect([pathOf(second), second.context.phase]).toEqual(['active.asking', 1]);
  expect(end.value).toBe('complete');
});

describe('cancel', () => {
  test.each(['asking', 'choosing', 'creating', 'working', 'checking'])('in %s', (at) => {
    const before = workflowMachine.resolveState({
      value: { active: at },
      context: begin(twoPhases).context,
    });

    const cancelling = after(before, { type: 'cancel', reason: 'no money' });
    const over = after(cancelling, { type: 'cancel', reason: 'again' }, done('cancelTasks'));

    expect(cancelling.value).toBe('cancelling');
    expect([over.value, over.context.why]).toEqual(['cancelled', 'no money']);
  });
});

test('every actor that fails ends the workflow with its message', () => {
  const invoking = nodesOf(workflowMachine.root).filter(({ invoke }) => invoke.length > 0);
  expect(invoking.length).toBe(6);
  for (const { path, invoke } of invoking) {
    const value = path.length === 1 ? path[0] : { [path[0] ?? '']: path[1] };
    const before = workflowMachine.resolveState({
      value: value as never,
      context: begin(twoPhases).context,
    });

    const failed = after(before, broken(invoke[0]?.id ?? '', 'no disk'));

    expect([failed.value, failed.context.why]).toEqual(['failed', 'no disk']);
  }
});

test('a further round has the steps that the phase repeats; the first one has all', () => {
  const [phase] = definition([
    { number: 1, name: 'one', steps: [step('a'), step('b')], repeat: ['b'] },
  ]).phases;
  const own = { ...twoPhases, phases: phase === undefined ? [] : [phase] };
  const first = begin(own);

  const again = after(first, ...round(bad));

  expect(stepsOfRound(first.context).map(({ id }) => id)).toEqual(['a', 'b']);
  expect(stepsOfRound(again.context).map(({ id }) => id)).toEqual(['b']);
  expect(() => phaseOf({ definition: own, phase: 7 })).toThrow('the workflow has no phase at 7');
});

test('a definition has its phases in their order, and each step once', () => {
  const problems = workflowDefinitionSchema
    .safeParse({
      ...{ name: 'own', version: '1.0.0', description: 'x' },
      phases: [
        { number: 2, name: 'two', steps: [step('a')] },
        { number: 1, name: 'one', steps: [step('a')] },
      ],
    })
    .error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);

  expect(problems).toEqual([
    'phases.1.number: is 1, after phase 2; phases stand in their order',
    'phases.1.steps.0.id: is a a second time; each step has an id of its own',
  ]);
});
