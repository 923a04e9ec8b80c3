import { ServiceError } from '../../../machines/errors.ts';
import type { TaskId } from '../../../machines/task.ts';
import type { TrackedTask } from '../../../machines/tracked-task.ts';
import { requireValidTask } from '../../ledger/issue.ts';
import { type NewTask, refuseUnknown } from '../port.ts';

import type { BdAnswer } from './answer.ts';
import { type BdCall, type BdCalls, bdUnavailable, type RunBd } from './calls.ts';
import { bdFailure } from './failure.ts';
import { issuesIn, trackedFromBd, unmetIn } from './issues.ts';
import { type BdReads, requireJson } from './reads.ts';

/** After these failures the outcome is unknown. */
const unclear: ReadonlySet<string> = new Set([
  'timeout',
  'crash',
  'unreadable',
  'too_large',
  'unknown',
]);

/**
 * A create that may have happened is not repeated; the caller decides. @throws tracker_unavailable
 */
const createdIn = (answer: BdAnswer, { title }: NewTask): unknown => {
  if (!('failure' in answer) || !unclear.has(answer.failure.kind)) return requireJson(answer);
  throw new ServiceError('tracker_unavailable', {
    detail: `${answer.failure.words}; it is unknown whether the task was created`,
    remedy: `look for ${JSON.stringify(title)} with 'agent list' before you create it again`,
  });
};

const callFor = (task: NewTask, bodyFile: boolean, by: string): BdCall => {
  const { title, description, priority, labels, externalRef } = task;
  // Old bd reads stdin for exactly this text.
  if (!bodyFile && description === '-')
    throw new ServiceError('invalid_params', {
      fields: [
        { path: 'description', problem: 'is exactly -, which this old bd reads as a file name' },
      ],
    });
  const args = [
    'create',
    '--json',
    `--title=${title}`,
    bodyFile ? '--body-file=-' : `--description=${description}`,
    '--type=task',
    `--priority=${priority}`,
    by,
    ...(externalRef === undefined ? [] : [`--external-ref=${externalRef}`]),
    ...(labels.length === 0 ? [] : [`--labels=${[...new Set(labels)].join(',')}`]),
  ];
  return { args, effect: 'once', ...(bodyFile ? { input: description } : {}) };
};

/**
 * Creates a task in bd. Dependencies are checked first, so that a missing one creates nothing, and
 * added one by one afterwards, since `--deps` hides its errors.
 */
export const createCreate = (calls: BdCalls, reads: BdReads, by: string) => {
  const depend = async (run: RunBd, id: TaskId, on: TaskId): Promise<void> => {
    const answer = await run({
      args: ['dep', 'add', '--json', by, '--', id, on],
      effect: 'repeat',
    });
    if ('failure' in answer && answer.failure.kind !== 'duplicate')
      throw new ServiceError('tracker_unavailable', {
        detail: `${id} was created, but its dependency on ${on} could not be added: ${answer.failure.words}`,
        remedy: `run 'agent dep add ${id} ${on}'`,
      });
  };

  const create = async (run: RunBd, task: NewTask): Promise<TrackedTask> => {
    const dependencies = [...new Set(task.dependencies)];
    const existing = new Set((await reads.showAll(run, dependencies)).map(({ id }) => id));
    refuseUnknown(dependencies.filter((id) => !existing.has(id)));
    const answer = await run(callFor(task, (await calls.capabilities()).bodyFile, by));
    reads.wrote(null);
    const [created] = issuesIn(createdIn(answer, task), () => {});
    if (created === undefined)
      throw bdUnavailable(bdFailure('unknown', 'bd printed no task that can be read'));
    for (const on of dependencies) await depend(run, created.id, on);
    // The output of `create` has no labels and no dependencies.
    const issue = await reads.show(run, created.id);
    if (issue === null)
      throw bdUnavailable(bdFailure('unknown', `bd created ${created.id}, but does not show it`));
    const unmet = unmetIn(issue);
    const tracked = trackedFromBd(issue, {
      unmet,
      ready: issue.status === 'open' && unmet.length === 0,
    });
    reads.wrote(tracked);
    return tracked;
  };

  return async (task: NewTask): Promise<TrackedTask> => {
    requireValidTask(task);
    return calls.alone('interactive', (run) => create(run, task));
  };
};
