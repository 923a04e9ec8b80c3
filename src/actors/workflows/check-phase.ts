import {
  type CheckFinding,
  type CheckReport,
  isSelected,
  phaseOf,
  stepsOf,
  type WorkflowContext,
} from '../../machines/workflow/workflow-context.ts';
import type { WorkflowCheck, WorkflowStep } from '../../machines/workflow/workflow-definition.ts';
import {
  fail,
  type Judgement,
  pass,
  recommendationOf,
  type StepEvidence,
} from '../gates/evidence.ts';
import { judgeInThread } from '../gates/judge.ts';

import { fillIn } from './planned-tasks.ts';

/** The evidence of a step: of each of its latest tasks; empty when it was not done. */
type EvidenceOf = (step: string) => Promise<readonly StepEvidence[]>;

const stops: ReadonlySet<string | null> = new Set(['DEFER', 'DO NOT PURSUE']);

const checkRecommendation = ({ results, taskId }: StepEvidence): Judgement => {
  const word = recommendationOf(results);
  return word === null
    ? fail(`the results of ${taskId} end with none of PURSUE, DEFER and DO NOT PURSUE`)
    : pass(`${taskId} ends with ${word}`);
};

/** The check with the words of its paths filled in. */
const fillCheck = (context: WorkflowContext, check: WorkflowCheck): WorkflowCheck => {
  const fill = (text: string): string => fillIn(context, text);
  switch (check.check) {
    case 'artifacts':
    case 'verdict':
      return check;
    case 'coverage':
    case 'tests':
      return { ...check, reports: check.reports.map(fill) };
    case 'answers':
      return { ...check, path: fill(check.path), questions: fill(check.questions) };
    case 'sections':
    case 'findings':
    case 'next_steps':
      return { ...check, path: fill(check.path) };
    case 'only_changes':
      return { ...check, allowed: check.allowed.map(fill) };
  }
};

const stepNamed = ({ definition }: WorkflowContext, id: string): WorkflowStep | undefined =>
  definition.phases.flatMap(({ steps }) => steps).find((step) => step.id === id);

const stepsOfAgents = (context: WorkflowContext): readonly string[] =>
  stepsOf(context, phaseOf(context))
    .filter(({ by }) => by !== 'person')
    .map(({ id }) => id);

const runCheck = async (
  context: WorkflowContext,
  gate: string,
  check: WorkflowCheck,
  evidenceOf: EvidenceOf,
): Promise<readonly CheckFinding[]> => {
  const named = 'of' in check ? [check.of] : stepsOfAgents(context);
  const finding = ({ passed, says }: Judgement, taskId?: string): CheckFinding => ({
    gate,
    check: check.check,
    passed,
    says,
    taskId,
  });
  const found: CheckFinding[] = [];
  for (const id of named) {
    const step = stepNamed(context, id);
    if (step !== undefined && !isSelected(context, step)) {
      found.push(finding(pass(`${id} is not asked for`)));
      continue;
    }
    const evidence = await evidenceOf(id);
    if (evidence.length === 0) found.push(finding(fail(`no task of the step ${id} is complete`)));
    for (const each of evidence)
      found.push(finding(await judgeInThread(fillCheck(context, check), each), each.taskId));
  }
  return found;
};

/** Checks each step of a phase for its duties that no gate names. */
const ownChecks = (context: WorkflowContext): readonly WorkflowCheck[] => {
  const phase = phaseOf(context);
  const named = phase.gates.flatMap(({ checks }) => checks);
  const isNamed = (kind: WorkflowCheck['check'], id: string): boolean =>
    named.some((check) => check.check === kind && 'of' in check && check.of === id);
  return stepsOf(context, phase).flatMap(({ id, leaves, ends_with }) => [
    ...(leaves.length > 0 && !isNamed('artifacts', id)
      ? [{ check: 'artifacts' as const, of: id }]
      : []),
    ...(ends_with === 'verdict' && !isNamed('verdict', id)
      ? [{ check: 'verdict' as const, of: id }]
      : []),
  ]);
};

/** Reads the recommendations of a phase; one to defer or not to pursue ends the workflow. */
const recommendations = async (
  context: WorkflowContext,
  evidenceOf: EvidenceOf,
): Promise<CheckReport> => {
  const findings: CheckFinding[] = [];
  let stop: string | null = null;
  for (const { id, ends_with } of stepsOf(context, phaseOf(context))) {
    if (ends_with !== 'recommendation') continue;
    for (const evidence of await evidenceOf(id)) {
      const word = recommendationOf(evidence.results);
      if (stops.has(word)) stop = `${id} (${evidence.taskId}) recommends: ${word}`;
      findings.push({
        gate: 'steps',
        check: 'recommendation',
        ...checkRecommendation(evidence),
      });
    }
  }
  return { findings, stop };
};

/** Runs the checks of a phase: what its steps owe, then its gates. */
export const checkPhase = async (
  context: WorkflowContext,
  evidenceOf: EvidenceOf,
): Promise<CheckReport> => {
  const { findings, stop } = await recommendations(context, evidenceOf);
  if (stop !== null) return { findings, stop };
  const all = [...findings];
  for (const check of ownChecks(context))
    all.push(...(await runCheck(context, 'steps', check, evidenceOf)));
  for (const { name, checks } of phaseOf(context).gates)
    for (const check of checks) all.push(...(await runCheck(context, name, check, evidenceOf)));
  return { findings: all, stop: null };
};
