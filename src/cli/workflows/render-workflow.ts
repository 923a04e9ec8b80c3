import type { Result } from '../client/client.ts';
import { oneLine, stripControls } from '../output/safe-text.ts';
import { wrapAfter } from '../output/wrap.ts';

type View = Result<'workflow.show'>;
type Phase = View['phases'][number];
/** What stands before a text that may be long, and that text. */
type PhaseLine = readonly [start: string, text: string];

const phaseStateWords: Readonly<Record<Phase['state'], string>> = {
  to_come: '-',
  active: 'at work',
  passed: 'passed',
  not_passed: 'not passed',
  passed_over: 'passed over',
};

const choiceLines = ({ steps }: Phase): readonly PhaseLine[] =>
  steps.flatMap(({ id, selected, decided_by, reason = '' }): readonly PhaseLine[] =>
    selected === undefined
      ? []
      : [
          [
            `    ${id}: `,
            `${selected ? 'yes' : 'no'} (${decided_by}${reason === '' ? '' : `: ${oneLine(reason)}`})`,
          ],
        ],
  );

const phaseTaskLines = ({ tasks }: Phase): readonly PhaseLine[] => {
  const steps = tasks.filter(({ step }) => !step.startsWith('?'));
  return steps.map(({ task_id, step, round, status }) => {
    const same = steps.filter((each) => each.step === step && each.round === round);
    const nth = same.findIndex((each) => each.task_id === task_id) + 1;
    const number = same.length === 1 ? '' : ` ${nth} of ${same.length}`;
    return [
      `    ${task_id} `,
      `${step}${number}${round === 1 ? '' : ` (round ${round})`}: ${status}`,
    ];
  });
};

const phaseLines = (phase: Phase): readonly PhaseLine[] => [
  [`  ${phase.number}  ${phaseStateWords[phase.state].padEnd(11)}  `, phase.name],
  ...choiceLines(phase),
  ...phaseTaskLines(phase),
  ...phase.findings.map(
    ({ gate, check, passed, says }): PhaseLine => [
      `    ${passed ? 'ok' : 'NOT OK'} `,
      `${gate}, ${check}: ${oneLine(says, 400)}`,
    ],
  ),
];

/** Paths in which the next gates look, each list once. */
const reportLines = ({ status, phase, reports, verify }: View): readonly PhaseLine[] => {
  const open = status === 'started' ? reports.filter((each) => each.phase >= phase) : [];
  const lists = new Map<string, readonly number[]>();
  for (const { phase: number, check, paths } of open) {
    const key = `${check}: ${paths.join(', ')}`;
    lists.set(key, [...new Set([...(lists.get(key) ?? []), number])]);
  }
  if (lists.size === 0) return [];
  const from =
    verify.length === 0
      ? 'what agents commit, since there is no --verify'
      : `what --verify writes: ${verify.join('; ')}`;
  return [
    ...[...lists].map(
      ([what, phases]): PhaseLine => [
        'will look for ',
        `${what} (${phases.length === 1 ? 'phase' : 'phases'} ${phases.join(', ')})`,
      ],
    ),
    ['  in ', from],
  ];
};

/**
 * The work of each task of an agent can be merged when the workflow is complete; when it ended
 * otherwise, that of the phases that passed.
 */
const workToTake = ({ status, phases }: View): readonly PhaseLine[] => {
  if (status === 'started') return [];
  const ended = status === 'complete' ? phases : phases.filter(({ state }) => state === 'passed');
  const ids = ended.flatMap(({ steps, tasks }) =>
    tasks
      .filter(({ step }) => steps.some(({ id, by }) => id === step && by !== 'person'))
      .map(({ task_id }) => task_id),
  );
  const what = status === 'complete' ? 'its work' : 'the work of the phases that passed';
  return ids.length === 0 ? [] : [[`take ${what} with: `, `agent merge ${ids.join(' ')}`]];
};

/** The next command after a workflow that ended early; null where there is none. */
export const goesOnWith = ({
  workflow_id,
  status,
  continued_as,
  problem,
}: {
  readonly workflow_id: string;
  readonly status: string;
  readonly continued_as?: string;
  readonly problem?: string;
}): PhaseLine | null => {
  if (continued_as !== undefined)
    return ['it goes on as ', `${continued_as}; see: agent workflow show ${continued_as}`];
  return problem === undefined && (status === 'failed' || status === 'cancelled')
    ? ['to go on: ', `agent workflow retry ${workflow_id}`]
    : null;
};

/** A workflow with its phases, for people. `width`: null where lines may be long. */
export const renderWorkflow = (view: View, width: number | null): string => {
  const lines: readonly PhaseLine[] = [
    ['', `${view.workflow_id} ${view.kind} ${view.version}: ${view.name}`],
    [view.status, view.why === undefined ? '' : `: ${oneLine(view.why, 2_000)}`],
    ...(view.problem === undefined ? [] : [['', oneLine(view.problem, 2_000)] as const]),
    ...(view.narrowed_by === undefined
      ? []
      : [
          [
            'narrowed by ',
            `${view.narrowed_by.file}: ${view.narrowed_by.changes.join('; ') || 'nothing'}`,
          ] as const,
        ]),
    ...view.phases.flatMap(phaseLines),
    ...reportLines(view),
    ...view.waits_for.map((each): PhaseLine => ['waits for ', each]),
    ...workToTake(view),
    ...[goesOnWith(view)].filter((line) => line !== null),
  ];
  return lines
    .map(([start, text]) => wrapAfter(stripControls(start), stripControls(text), width))
    .join('\n');
};
