import { initialTransition, transition } from 'xstate';
import {
  type CheckReport,
  isSelected,
  openChoices,
  phaseOf,
  stepsOf,
  stepsOfRound,
  type WorkflowContext,
  type WorkflowInput,
} from './workflow-context.ts';
import type { WorkflowCheck, WorkflowDefinition, WorkflowStep } from './workflow-definition.ts';
import { type WorkflowSnapshot, workflowMachine } from './workflow-machine.ts';

/** Something that can happen next: what the actor of the state may answer. */
interface PossibleOutcome {
  readonly says: string;
  readonly actor: string;
  readonly output: unknown;
}

interface Obstacle {
  readonly why: string;
  /** The keys that lead to its cause in the definition. */
  readonly path: readonly (string | number)[];
}

export interface DeadEnd extends Obstacle {
  /** The number of the phase that cannot end. */
  readonly phase: number;
  /** The events that lead there, in order; the shortest way. */
  readonly way: readonly string[];
}

export interface SearchResult {
  /** The number of states that were looked at. */
  readonly states: number;
  /** The shortest way to a phase that cannot end; null: none was found. */
  readonly deadEnd: DeadEnd | null;
  /** True when there were more states than the search looks at: nothing is proved. */
  readonly isCut: boolean;
}

const passed: CheckReport = { findings: [], stop: null };
const notPassed: CheckReport = {
  findings: [{ gate: '', check: '', passed: false, says: '' }],
  stop: null,
};
const stopped: CheckReport = { findings: [], stop: 'DEFER' };
const allSubsetsAtMost = 6;
/** About a second of search. */
const statesAtMost = 10_000;

/** Every choice of optional steps; of many, none, each alone, and all. */
const subsets = (steps: readonly WorkflowStep[]): readonly (readonly WorkflowStep[])[] =>
  steps.length > allSubsetsAtMost
    ? [[], ...steps.map((step) => [step]), steps]
    : Array.from({ length: 2 ** steps.length }, (_, bits) =>
        steps.filter((_step, at) => (bits & (1 << at)) !== 0),
      );

const withoutTemplate = (path: string): string => path.replace(/\{\{\w+\}\}/g, '*');

/** A file that a check reads is left by a step before. */
const isLeft = (steps: readonly WorkflowStep[], path: string): boolean => {
  const wanted = withoutTemplate(path);
  return steps.some(({ leaves }) =>
    leaves
      .map(withoutTemplate)
      .some((left) => left === wanted || (left.endsWith('/') && wanted.startsWith(left))),
  );
};

const pathsOf = (check: WorkflowCheck): readonly string[] => {
  if (check.check === 'answers') return [check.path, check.questions];
  return 'path' in check ? [check.path] : [];
};

/** Why a check can never pass; null when it can. */
const neverPasses = (context: WorkflowContext, check: WorkflowCheck): string | null => {
  if (check.check === 'only_changes') return null;
  const upToNow = context.definition.phases.slice(0, context.phase + 1);
  const step = upToNow.flatMap(({ steps }) => steps).find(({ id }) => id === check.of);
  if (step === undefined)
    return `its check ${check.check} reads the work of ${check.of}, and no step of this phase or one before has that id`;
  if (!isSelected(context, step)) return null;
  if (step.by === 'person')
    return `its check ${check.check} reads the work of ${check.of}, which a person does: there is nothing to read`;
  if (check.check === 'artifacts' && step.leaves.length === 0)
    return `its check artifacts looks for what ${check.of} leaves, and that step leaves nothing`;
  if (check.check === 'verdict' && step.ends_with !== 'verdict')
    return `its check verdict reads the results of ${check.of}, which end with no verdict`;
  const done = upToNow.flatMap((phase) => stepsOf(context, phase));
  const missing = pathsOf(check).find((path) => !isLeft(done, path));
  return missing === undefined
    ? null
    : `its check ${check.check} reads ${missing}, and no step that is done before leaves it`;
};

/** The first check of the phase that can never pass. */
const findImpossibleCheck = (context: WorkflowContext): Obstacle | null => {
  for (const [gate, { checks }] of phaseOf(context).gates.entries())
    for (const [at, check] of checks.entries()) {
      const why = neverPasses(context, check);
      if (why !== null)
        return { why, path: ['phases', context.phase, 'gates', gate, 'checks', at] };
    }
  return null;
};

/** Steps that wait for each other in a circle, of steps that all wait for another of them. */
const circleIn = (waiting: readonly WorkflowStep[]): readonly WorkflowStep[] => {
  const way: WorkflowStep[] = [];
  let next = waiting[0];
  while (next !== undefined && !way.includes(next)) {
    way.push(next);
    const { needs }: WorkflowStep = next;
    next = waiting.find(({ id }) => needs.includes(id));
  }
  return next === undefined ? way : way.slice(way.indexOf(next));
};

/** Steps that wait for each other, or for a step that is not there. */
const findImpossibleStart = (context: WorkflowContext): Obstacle | null => {
  const { steps, repeat = [] } = phaseOf(context);
  const place = ['phases', context.phase] as const;
  const needsOf = (step: string | undefined) =>
    [...place, 'steps', steps.findIndex(({ id }) => id === step), 'needs'] as const;
  const isHere = (id: string): boolean => steps.some((step) => step.id === id);
  for (const step of steps) {
    const at = step.needs.findIndex((need) => !isHere(need));
    if (at >= 0) {
      const why = `its step ${step.id} needs ${step.needs[at]}, which is no step of this phase`;
      return { why, path: [...needsOf(step.id), at] };
    }
  }
  const done = new Set<string>();
  for (let left = steps; left.length > 0; ) {
    const free = left.filter(({ needs }) => needs.every((need) => done.has(need)));
    if (free.length === 0) {
      const ids = circleIn(left).map(({ id }) => id);
      const why =
        ids.length === 1
          ? `its step ${ids[0]} needs itself`
          : `its steps ${ids.join(', ')} wait for each other`;
      return { why, path: needsOf(ids[0]) };
    }
    for (const { id } of free) done.add(id);
    left = left.filter(({ id }) => !done.has(id));
  }
  const unknown = repeat.findIndex((id) => !isHere(id));
  return unknown === -1
    ? null
    : {
        why: `it repeats ${repeat[unknown]}, which is no step of this phase`,
        path: [...place, 'repeat', unknown],
      };
};

const choosing = (context: WorkflowContext): readonly PossibleOutcome[] => {
  const open = openChoices(context);
  return subsets(open).map((some) => ({
    says: `of the optional steps ${some.length === 0 ? 'none' : some.map(({ id }) => id).join(', ')}`,
    actor: 'awaitAnswers',
    output: open.map(({ id }) => ({
      step: id,
      by: 'search',
      reason: '',
      selected: some.some((step) => step.id === id),
    })),
  }));
};

const checking = (context: WorkflowContext): readonly PossibleOutcome[] => {
  const { gates } = phaseOf(context);
  const steps = stepsOfRound(context);
  const outcome = (says: string, output: CheckReport): PossibleOutcome => ({
    says,
    output,
    actor: 'checkPhase',
  });
  const mayFail =
    gates.length > 0 ||
    steps.some(({ leaves, ends_with }) => leaves.length > 0 || ends_with !== undefined);
  const mayStop = steps.some(({ ends_with }) => ends_with === 'recommendation');
  return [
    outcome('it passes', passed),
    ...(mayFail ? [outcome(`round ${context.round} does not pass`, notPassed)] : []),
    ...(mayStop ? [outcome('the recommendation is to defer', stopped)] : []),
  ];
};

/** The events that may happen in a state, or why none can. */
const outcomesOf = (snapshot: WorkflowSnapshot): readonly PossibleOutcome[] | Obstacle => {
  const { context } = snapshot;
  if (snapshot.matches({ active: 'choosing' })) return choosing(context);
  if (snapshot.matches({ active: 'asking' }))
    return [{ says: '', actor: 'askQuestions', output: [] }];
  if (snapshot.matches({ active: 'creating' }))
    return findImpossibleStart(context) ?? [{ says: '', actor: 'createTasks', output: [] }];
  if (snapshot.matches({ active: 'working' }))
    return [{ says: '', actor: 'awaitTasks', output: undefined }];
  if (snapshot.matches({ active: 'checking' }))
    return findImpossibleCheck(context) ?? checking(context);
  return [];
};

/**
 * Whether a choice can still make a difference: the step is of this phase, or a check from here on
 * reads its work. Without this, the choices of all phases would multiply.
 */
const mattersFrom = (definition: WorkflowDefinition): ((at: number, id: string) => boolean) => {
  const byPhase = definition.phases.map(({ steps }, at) => {
    const checks = definition.phases
      .slice(at)
      .flatMap(({ gates }) => gates.flatMap((gate) => gate.checks));
    const isRead = (step: WorkflowStep): boolean =>
      checks.some(
        (check) =>
          ('of' in check && check.of === step.id) ||
          pathsOf(check).some((path) => isLeft([step], path)),
      );
    const before = definition.phases.slice(0, at).flatMap((phase) => phase.steps);
    return new Set([...steps, ...before.filter(isRead)].map(({ id }) => id));
  });
  return (at, id) => byPhase[at]?.has(id) !== false;
};

const stateKey = (
  { value, context }: WorkflowSnapshot,
  matters: ReturnType<typeof mattersFrom>,
): string => {
  const choices = context.choices.flatMap(({ step, selected }) =>
    matters(context.phase, step) ? [[step, selected]] : [],
  );
  return JSON.stringify([value, context.phase, context.round, choices]);
};

const searchInput = (
  definition: WorkflowDefinition,
  without: readonly string[],
): WorkflowInput => ({
  workflowId: 'search',
  definition,
  subject: { name: '', slug: '', product: '', thoroughness: 'medium' },
  verify: [],
  model: null,
  decides: 'person',
  startedAt: 0,
  choices: without.map((step) => ({ step, selected: false, by: 'search', reason: '' })),
});

interface Reached {
  readonly snapshot: WorkflowSnapshot;
  readonly way: readonly string[];
}

const nextOf = ({ snapshot, way }: Reached, { says, actor, output }: PossibleOutcome): Reached => {
  const event = { type: `xstate.done.actor.${actor}`, output, actorId: actor };
  const [next] = transition(workflowMachine, snapshot, event as never);
  const { number } = phaseOf(snapshot.context);
  return { snapshot: next, way: says === '' ? way : [...way, `phase ${number}: ${says}`] };
};

/**
 * Goes through the states of the chart that the definition allows, nearest first, until one is
 * found that nothing leads out of. States that differ only in choices without effect are one.
 * `without`: optional steps that are never done.
 */
export const searchWorkflow = (
  definition: WorkflowDefinition,
  without: readonly string[] = [],
): SearchResult => {
  const [first] = initialTransition(workflowMachine, searchInput(definition, without));
  const matters = mattersFrom(definition);
  const seen = new Set([stateKey(first, matters)]);
  let waiting: Reached[] = [{ snapshot: first, way: [] }];
  while (waiting.length > 0) {
    const found: Reached[] = [];
    for (const reached of waiting) {
      const outcomes = outcomesOf(reached.snapshot);
      if ('why' in outcomes) {
        const { number } = phaseOf(reached.snapshot.context);
        const deadEnd = { ...outcomes, phase: number, way: reached.way };
        return { states: seen.size, deadEnd, isCut: false };
      }
      for (const outcome of outcomes) {
        const next = nextOf(reached, outcome);
        const key = stateKey(next.snapshot, matters);
        if (seen.has(key)) continue;
        if (seen.size >= statesAtMost) return { states: seen.size, deadEnd: null, isCut: true };
        seen.add(key);
        found.push(next);
      }
    }
    waiting = found;
  }
  return { states: seen.size, deadEnd: null, isCut: false };
};
