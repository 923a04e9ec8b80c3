import { z } from 'zod';
import { plural } from '../plural.ts';
import {
  type WorkflowDefinition,
  workflowKeySchema,
  workflowPathSchema,
} from './workflow-definition.ts';

/**
 * A project's own file for a workflow, `.agent/workflows/<name>.yml`. It comes with the repository,
 * so it can leave out optional steps and ask for more, and has no words for anything else: no
 * commands, no roles, no texts.
 */
export const workflowNarrowingSchema = z.strictObject({
  narrows: workflowKeySchema.describe('the name of the workflow'),
  without: z
    .array(workflowKeySchema)
    .max(30)
    .default([])
    .describe('optional steps that are never done here'),
  rounds: z.int().min(1).max(10).optional().describe('a phase is tried at most so often'),
  coverage: z
    .number()
    .min(0)
    .max(100)
    .optional()
    .describe('each coverage check asks at least for it'),
  tests: z.int().min(1).optional().describe('each tests check asks at least for so many'),
  investigators: z.int().min(1).max(16).optional().describe('at most so many'),
  max_turns: z.int().min(1).max(1_000).optional().describe('at most so many in each task'),
  leaves: z
    .record(workflowKeySchema, z.array(workflowPathSchema).min(1).max(20))
    .default({})
    .describe('for steps: files that they must leave as well'),
});
export type WorkflowNarrowing = z.infer<typeof workflowNarrowingSchema>;

interface NarrowingProblem {
  readonly path: readonly PropertyKey[];
  readonly problem: string;
}

export interface NarrowedWorkflow {
  readonly definition: WorkflowDefinition;
  /** Optional steps that count as answered with no. */
  readonly without: readonly string[];
  /** For people: `at most 2 rounds`. */
  readonly changes: readonly string[];
}

/** A definition, and what the project's file made of it; null: there is no such file. */
export interface FoundWorkflow {
  readonly definition: WorkflowDefinition;
  readonly narrowed: (Omit<NarrowedWorkflow, 'definition'> & { readonly file: string }) | null;
}

export type Narrowed =
  | { readonly ok: true; readonly value: NarrowedWorkflow }
  | { readonly ok: false; readonly problems: readonly NarrowingProblem[] };

type Bound = 'rounds' | 'coverage' | 'tests' | 'investigators' | 'max_turns';
const lowers: ReadonlySet<Bound> = new Set(['rounds', 'investigators', 'max_turns']);

const boundsOf = (definition: WorkflowDefinition): Readonly<Record<Bound, readonly number[]>> => {
  const checks = definition.phases.flatMap(({ gates }) => gates.flatMap((gate) => gate.checks));
  const minimumsOf = (kind: 'coverage' | 'tests'): readonly number[] =>
    checks.flatMap((check) => (check.check === kind ? [check.minimum] : []));
  const levels = Object.values(definition.thoroughness ?? {});
  return {
    rounds: definition.phases.map(({ rounds }) => rounds),
    coverage: minimumsOf('coverage'),
    tests: minimumsOf('tests'),
    investigators: levels.map(({ investigators }) => investigators),
    max_turns: levels.map(({ max_turns }) => max_turns),
  };
};

const boundProblems = (
  definition: WorkflowDefinition,
  narrowing: WorkflowNarrowing,
): readonly NarrowingProblem[] => {
  const bounds = boundsOf(definition);
  return (Object.keys(bounds) as Bound[]).flatMap((path) => {
    const wanted = narrowing[path];
    const own = bounds[path];
    if (wanted === undefined) return [];
    if (own.length === 0)
      return [{ path: [path], problem: `is ${wanted}, but ${definition.name} has no such bound` }];
    const isLower = lowers.has(path);
    const limit = isLower ? Math.max(...own) : Math.min(...own);
    if (isLower ? wanted <= limit : wanted >= limit) return [];
    const more = isLower ? 'more' : 'less';
    const problem = `is ${wanted}, ${more} than the ${limit} of ${definition.name}; a project's file may only narrow`;
    return [{ path: [path], problem }];
  });
};

const stepProblems = (
  { name, phases }: WorkflowDefinition,
  { without, leaves }: WorkflowNarrowing,
): readonly NarrowingProblem[] => {
  const steps = phases.flatMap((phase) => phase.steps);
  const optional = steps.filter(({ when }) => when !== undefined).map(({ id }) => id);
  return [
    ...without.flatMap((id, at) =>
      optional.includes(id)
        ? []
        : [
            {
              path: ['without', at],
              problem: `is ${id}, no optional step of ${name}; those are ${optional.join(', ') || 'none'}`,
            },
          ],
    ),
    ...Object.keys(leaves)
      .filter((id) => !steps.some((step) => step.id === id && step.by !== 'person'))
      .map((id) => ({ path: ['leaves', id], problem: `names no step of an agent of ${name}` })),
  ];
};

const narrowPhase = (
  phase: WorkflowDefinition['phases'][number],
  { rounds, coverage = 0, tests = 0, leaves }: WorkflowNarrowing,
): WorkflowDefinition['phases'][number] => ({
  ...phase,
  rounds: Math.min(phase.rounds, rounds ?? phase.rounds),
  steps: phase.steps.map((step) => ({
    ...step,
    leaves: [...step.leaves, ...(leaves[step.id] ?? [])],
  })),
  gates: phase.gates.map((gate) => ({
    ...gate,
    checks: gate.checks.map((check) => {
      if (check.check === 'coverage')
        return { ...check, minimum: Math.max(check.minimum, coverage) };
      return check.check === 'tests'
        ? { ...check, minimum: Math.max(check.minimum, tests) }
        : check;
    }),
  })),
});

const narrowingWords = ({
  without,
  rounds,
  coverage,
  tests,
  investigators,
  max_turns,
  leaves,
}: WorkflowNarrowing): readonly string[] => [
  ...(without.length === 0 ? [] : [`without ${without.join(', ')}`]),
  ...(rounds === undefined ? [] : [`at most ${plural(rounds, 'round')} of each phase`]),
  ...(coverage === undefined ? [] : [`at least ${coverage} % coverage`]),
  ...(tests === undefined ? [] : [`at least ${plural(tests, 'passed test')}`]),
  ...(investigators === undefined ? [] : [`at most ${plural(investigators, 'investigator')}`]),
  ...(max_turns === undefined ? [] : [`at most ${plural(max_turns, 'turn')} of each task`]),
  ...Object.entries(leaves).map(([step, paths]) => `${step} leaves ${paths.join(', ')} as well`),
];

/**
 * The workflow with what a project's file asks for, or why that would widen it. What is left out
 * stays in the definition, as a step that was answered with no (ADR 0088).
 */
export const narrowWorkflow = (
  definition: WorkflowDefinition,
  narrowing: WorkflowNarrowing,
): Narrowed => {
  const problems = [
    ...(narrowing.narrows === definition.name
      ? []
      : [{ path: ['narrows'], problem: `is ${narrowing.narrows}, not ${definition.name}` }]),
    ...stepProblems(definition, narrowing),
    ...boundProblems(definition, narrowing),
  ];
  if (problems.length > 0) return { ok: false, problems };
  const { investigators, max_turns } = narrowing;
  const { thoroughness } = definition;
  type Level = NonNullable<typeof thoroughness>['quick'];
  const level = (own: Level): Level => ({
    investigators: Math.min(own.investigators, investigators ?? own.investigators),
    max_turns: Math.min(own.max_turns, max_turns ?? own.max_turns),
  });
  const narrowed = {
    ...definition,
    ...(thoroughness === undefined
      ? {}
      : {
          thoroughness: {
            quick: level(thoroughness.quick),
            medium: level(thoroughness.medium),
            deep: level(thoroughness.deep),
          },
        }),
    phases: definition.phases.map((phase) => narrowPhase(phase, narrowing)),
  };
  const { without } = narrowing;
  return { ok: true, value: { definition: narrowed, without, changes: narrowingWords(narrowing) } };
};
