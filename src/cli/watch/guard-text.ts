import { z } from 'zod';
import type { RunGuard } from '../../machines/run-guards.ts';
import type { SlotGuard } from '../../machines/slot-guards.ts';
import type { WorkflowGuard } from '../../machines/workflow-guards.ts';

const guardSchema = z.object({
  guard: z.string(),
  value: z.boolean(),
  inputs: z.record(z.string(), z.unknown()),
});
export const guardsSchema = z.array(guardSchema);

type KnownGuard = z.infer<typeof guardSchema>;
type Inputs = KnownGuard['inputs'];

const countText = (value: unknown): string =>
  typeof value === 'number' ? value.toLocaleString('en') : 'unknown';

const unmet = ({ unmet: ids }: Inputs): string =>
  Array.isArray(ids) && ids.length > 0 ? `waits for ${ids.join(', ')}` : '';

const listText = (value: unknown): string => (Array.isArray(value) ? value.join(', ') : '');

const noModel = ({ problem, missing_credential: missing }: Inputs): string =>
  typeof problem === 'string'
    ? problem
    : typeof missing === 'string'
      ? `${missing} is not set`
      : '';

/** For each guard the need of a run in the words of a person, and the facts that are known. */
const needs: Readonly<
  Record<RunGuard | SlotGuard | WorkflowGuard, readonly [string, (inputs: Inputs) => string]>
> = {
  taskExists: ['the task is in the tracker', () => ''],
  dependenciesComplete: ['its dependencies are complete', unmet],
  heldByNobodyElse: [
    'nobody else holds it',
    ({ holder }) => (typeof holder === 'string' ? `${holder} holds it` : ''),
  ],
  projectCanBeUsed: [
    'agents can work in the project',
    ({ problem, remedy }) => (typeof problem === 'string' ? `it ${problem}; ${remedy}` : ''),
  ],
  modelCanBeCalled: ['a model is set up', noModel],
  withinBudget: [
    'no budget is used up',
    ({ detail, ends }) =>
      typeof detail !== 'string'
        ? ''
        : typeof ends === 'string'
          ? `${detail}, until ${ends}`
          : detail,
  ],
  hasAttemptsLeft: [
    'its failure may be tried again',
    ({ retries_left: left }) => `retries left: ${countText(left)}`,
  ],
  queueHasRoom: [
    'the queue has room',
    ({ waiting, limit }) => `${countText(waiting)} of ${countText(limit)} wait`,
  ],
  hasOpenChoices: ['its optional steps are decided', ({ open }) => listText(open)],
  hasNoSteps: ['the phase has steps to do', ({ steps }) => listText(steps)],
  hasPassed: ['its latest check passed', ({ failed }) => listText(failed)],
  hasRoundsLeft: [
    'another round may follow',
    ({ round, rounds }) => `round ${countText(round)} of ${countText(rounds)}`,
  ],
  slotIsFree: [
    'a slot is free',
    ({ running, cap, paused, role, role_running: ofRole, role_cap: roleCap }) => {
      if (typeof paused === 'string') return paused;
      if (roleCap === 0) return `this server runs no ${role}; another one must have room`;
      const used = `${countText(running)} of ${countText(cap)} are in use`;
      return roleCap === undefined
        ? used
        : `${used}; of the role ${role}: ${countText(ofRole)} of ${countText(roleCap)}`;
    },
  ],
};

const isKnown = (guard: string): guard is keyof typeof needs => Object.hasOwn(needs, guard);

/** These hold a workflow up when they are true; their words in the table say the opposite. */
const obstacles: ReadonlySet<string> = new Set<WorkflowGuard>(['hasOpenChoices', 'hasNoSteps']);

/** Before a failure there is nothing to try again. */
const isAboutNothing = ({ guard, inputs }: KnownGuard): boolean =>
  guard === 'hasAttemptsLeft' && inputs['retryable'] === null;

/**
 * @returns for each guard that says something about this task: `  no   ` and `its dependencies are
 * complete: waits for bd-a1`. The names and inputs of the guards are in `agent explain --json`.
 */
export const guardLines = (guards: readonly KnownGuard[]): readonly (readonly [string, string])[] =>
  guards
    .filter((guard) => !isAboutNothing(guard))
    .map(({ guard, value, inputs }) => {
      const [need, detail] = isKnown(guard) ? needs[guard] : [guard, JSON.stringify];
      const known = detail(inputs);
      const isMet = value !== obstacles.has(guard);
      return [`  ${isMet ? 'yes' : 'no '}  `, known === '' ? need : `${need}: ${known}`] as const;
    });
