import type { Result } from '../client/client.ts';
import { oneLine, stripControls } from '../output/safe-text.ts';

type View = Result<'workflow.show'>;
type Phase = View['phases'][number];

const stateWords: Readonly<Record<Phase['state'], string>> = {
  to_come: '-',
  active: 'at work',
  passed: 'passed',
  not_passed: 'not passed',
  passed_over: 'passed over',
};

const chosen = ({ steps }: Phase): readonly string[] =>
  steps.flatMap(({ id, selected, decided_by, reason = '' }) =>
    selected === undefined
      ? []
      : [
          `    ${id}: ${selected ? 'yes' : 'no'} (${decided_by}${reason === '' ? '' : `: ${oneLine(reason)}`})`,
        ],
  );

const phaseLines = (phase: Phase): readonly string[] => [
  `  ${phase.number}  ${stateWords[phase.state].padEnd(11)}  ${phase.name}`,
  ...chosen(phase),
  ...phase.tasks
    .filter(({ step }) => !step.startsWith('?'))
    .map(
      ({ task_id, step, round, status }) =>
        `    ${task_id} ${step}${round === 1 ? '' : ` (round ${round})`}: ${status}`,
    ),
  ...phase.findings.map(
    ({ gate, check, passed, says }) =>
      `    ${passed ? 'ok' : 'NOT OK'} ${gate}, ${check}: ${oneLine(says, 400)}`,
  ),
];

/** A workflow with its phases, for people. */
export const renderWorkflow = (view: View): string =>
  stripControls(
    [
      `${view.workflow_id} ${view.kind} ${view.version}: ${view.name}`,
      `${view.status}${view.why === undefined ? '' : `: ${view.why}`}`,
      ...view.phases.flatMap(phaseLines),
      ...view.waits_for.map((each) => `waits for ${each}`),
    ].join('\n'),
  );
