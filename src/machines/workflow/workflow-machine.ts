import { assign, type SnapshotFrom, setup } from 'xstate';
import { declareActor } from '../declare-actor.ts';
import { messageOf } from '../message-of.ts';
import {
  type CheckReport,
  hasPassed,
  openChoices,
  phaseOf,
  type StepChoice,
  stepsOf,
  type WorkflowContext,
  type WorkflowEvent,
  type WorkflowInput,
  type WorkflowTask,
} from './workflow-context.ts';

type WithContext = { readonly context: WorkflowContext };

/** The guards of a workflow that `explain` evaluates too. */
export const workflowGuards = {
  hasOpenChoices: ({ context }: WithContext): boolean => openChoices(context).length > 0,
  hasNoSteps: ({ context }: WithContext): boolean =>
    stepsOf(context, phaseOf(context)).length === 0,
  hasPassed: (_: WithContext, { report }: { report: CheckReport }): boolean => hasPassed(report),
  hasRoundsLeft: ({ context }: WithContext): boolean => context.round < phaseOf(context).rounds,
};
export type WorkflowGuard = keyof typeof workflowGuards;

const reportOf = ({ event }: { event: { readonly output: CheckReport } }) => ({
  report: event.output,
});
const tasksOfOutput = ({ event }: { event: { readonly output: readonly WorkflowTask[] } }) => ({
  tasks: event.output,
});
const choicesOfOutput = ({ event }: { event: { readonly output: readonly StepChoice[] } }) => ({
  choices: event.output,
});
const failureOfError = ({ event }: { event: { readonly error: unknown } }) => ({
  why: messageOf(event.error),
});
const reasonOfEvent = ({ event }: { event: { readonly reason: string | null } }) => ({
  why: event.reason,
});

const isLast = ({ definition, phase }: WorkflowContext): boolean =>
  phase === definition.phases.length - 1;

const failedChecks = ({ findings }: CheckReport): string =>
  findings
    .filter(({ passed }) => !passed)
    .map(({ gate, check, says }) => `${gate}, ${check}: ${says}`)
    .join('; ');

const workflowSetup = setup({
  types: {
    context: {} as WorkflowContext,
    events: {} as WorkflowEvent,
    input: {} as WorkflowInput | undefined,
  },
  actors: {
    askQuestions: declareActor<readonly WorkflowTask[], WorkflowContext>('askQuestions'),
    awaitAnswers: declareActor<readonly StepChoice[], WorkflowContext>('awaitAnswers'),
    createTasks: declareActor<readonly WorkflowTask[], WorkflowContext>('createTasks'),
    awaitTasks: declareActor<void, WorkflowContext>('awaitTasks'),
    checkPhase: declareActor<CheckReport, WorkflowContext>('checkPhase'),
    cancelTasks: declareActor<void, WorkflowContext>('cancelTasks'),
  },
  guards: {
    ...workflowGuards,
    hasNoStepsAtEnd: ({ context }) => isLast(context) && workflowGuards.hasNoSteps({ context }),
    mustStop: (_, { report }: { report: CheckReport }) => report.stop !== null,
    hasPassedAll: ({ context }, { report }: { report: CheckReport }) =>
      isLast(context) && hasPassed(report),
  },
  actions: {
    addTasks: assign({
      tasks: ({ context }, { tasks }: { tasks: readonly WorkflowTask[] }) => [
        ...context.tasks,
        ...tasks,
      ],
    }),
    addChoices: assign({
      choices: ({ context }, { choices }: { choices: readonly StepChoice[] }) => [
        ...context.choices,
        ...choices,
      ],
    }),
    keepReport: assign({
      reports: ({ context }, { report }: { report: CheckReport }) => [
        ...context.reports.filter(({ phase }) => phase !== context.phase),
        { phase: context.phase, report },
      ],
    }),
    nextPhase: assign({ phase: ({ context }) => context.phase + 1, round: 1 }),
    nextRound: assign({ round: ({ context }) => context.round + 1 }),
    recordWhy: assign({ why: (_, { why }: { why: string | null }) => why }),
    recordStop: assign({ why: (_, { report }: { report: CheckReport }) => report.stop }),
    recordFailedChecks: assign({
      why: ({ context }, { report }: { report: CheckReport }) =>
        `phase ${phaseOf(context).number} did not pass in ${context.round} of ${phaseOf(context).rounds} rounds: ${failedChecks(report)}`,
    }),
  },
});

const wholeContext = ({ context }: { context: WorkflowContext }) => context;
const onError = {
  target: '#workflow.failed',
  actions: { type: 'recordWhy', params: failureOfError },
} as const;

/**
 * A workflow: for each phase of its definition, which optional steps are done, their tasks, and the
 * checks of what they left. What fails goes back to the phase, a bounded number of times.
 */
export const workflowMachine = workflowSetup.createMachine({
  id: 'workflow',
  context: ({ input }) => ({
    ...(input ?? ({} as WorkflowInput)),
    phase: input?.from?.phase ?? 0,
    round: input?.from?.round ?? 1,
    tasks: input?.from?.tasks ?? [],
    reports: input?.from?.reports ?? [],
    why: null,
  }),
  initial: 'active',
  states: {
    active: {
      initial: 'entering',
      meta: { says: 'a phase is at work' },
      on: {
        cancel: {
          target: 'cancelling',
          actions: { type: 'recordWhy', params: reasonOfEvent },
        },
      },
      states: {
        entering: {
          meta: { says: 'a phase begins: with its questions, its steps, or the next phase' },
          always: [
            { guard: 'hasOpenChoices', target: 'asking' },
            { guard: 'hasNoStepsAtEnd', target: '#workflow.complete' },
            { guard: 'hasNoSteps', target: 'entering', reenter: true, actions: 'nextPhase' },
            { target: 'creating' },
          ],
        },
        asking: {
          meta: { says: 'makes a task of each question about an optional step' },
          invoke: {
            id: 'askQuestions',
            src: 'askQuestions',
            input: wholeContext,
            onDone: {
              target: 'choosing',
              actions: { type: 'addTasks', params: tasksOfOutput },
            },
            onError,
          },
        },
        choosing: {
          tags: 'waits',
          meta: { says: 'waits for the answers, of a person or a role' },
          invoke: {
            id: 'awaitAnswers',
            src: 'awaitAnswers',
            input: wholeContext,
            onDone: {
              target: 'entering',
              actions: { type: 'addChoices', params: choicesOfOutput },
            },
            onError,
          },
        },
        creating: {
          meta: { says: 'makes and starts the tasks of this round; those that exist stay' },
          invoke: {
            id: 'createTasks',
            src: 'createTasks',
            input: wholeContext,
            onDone: {
              target: 'working',
              actions: { type: 'addTasks', params: tasksOfOutput },
            },
            onError,
          },
        },
        working: {
          tags: 'waits',
          meta: { says: 'waits until every task of this round is complete' },
          invoke: {
            id: 'awaitTasks',
            src: 'awaitTasks',
            input: wholeContext,
            onDone: 'checking',
            onError,
          },
        },
        checking: {
          meta: { says: 'reads the evidence: what the steps left, and the gates' },
          invoke: {
            id: 'checkPhase',
            src: 'checkPhase',
            input: wholeContext,
            onDone: [
              {
                guard: { type: 'mustStop', params: reportOf },
                target: '#workflow.stopped',
                actions: [
                  { type: 'keepReport', params: reportOf },
                  { type: 'recordStop', params: reportOf },
                ],
              },
              {
                guard: { type: 'hasPassedAll', params: reportOf },
                target: '#workflow.complete',
                actions: { type: 'keepReport', params: reportOf },
              },
              {
                guard: { type: 'hasPassed', params: reportOf },
                target: 'entering',
                actions: [{ type: 'keepReport', params: reportOf }, 'nextPhase'],
              },
              {
                guard: 'hasRoundsLeft',
                target: 'creating',
                actions: [{ type: 'keepReport', params: reportOf }, 'nextRound'],
              },
              {
                target: '#workflow.failed',
                actions: [
                  { type: 'keepReport', params: reportOf },
                  { type: 'recordFailedChecks', params: reportOf },
                ],
              },
            ],
            onError,
          },
        },
      },
    },
    cancelling: {
      meta: { says: 'cancels the tasks that are not over' },
      on: { cancel: {} },
      invoke: {
        id: 'cancelTasks',
        src: 'cancelTasks',
        input: wholeContext,
        onDone: 'cancelled',
        onError,
      },
    },
    complete: { type: 'final', meta: { says: 'every phase has passed' } },
    stopped: {
      type: 'final',
      meta: { says: 'a strategist recommended to defer or not to pursue' },
    },
    failed: { type: 'final', meta: { says: 'a phase did not pass in its rounds' } },
    cancelled: { type: 'final', meta: { says: 'a person cancelled it' } },
  },
});

export type WorkflowSnapshot = SnapshotFrom<typeof workflowMachine>;
