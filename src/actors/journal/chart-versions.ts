import { ServiceError } from '../../machines/errors.ts';
import { messageOf } from '../../machines/message-of.ts';
import type { ChartVersions, SavedActor } from '../store/port.ts';

/**
 * `newest` rises with a change of the charts after which an earlier server could not go on from a saved
 * state. `oldest` rises when this code can no longer go on from the states of a version (ADR 0120).
 */
export const charts: ChartVersions = { oldest: 1, newest: 1 };

type Versioned = Pick<SavedActor, 'version'>;

export const isOf = ({ oldest, newest }: ChartVersions, { version }: Versioned): boolean =>
  version >= oldest && version <= newest;

/** True when this server can go on from the state. */
export const canRead = (saved: Versioned): boolean => isOf(charts, saved);

const versionsInWords = ({ oldest, newest }: ChartVersions): string =>
  oldest === newest ? `${newest}` : `${oldest} to ${newest}`;

type Named = Pick<SavedActor, 'id' | 'taskId' | 'version' | 'pending'>;

/** A way out for a person, when no running server can go on with it. */
const remedyFor = (saved: Named): string => {
  const { id, taskId, version, pending } = saved;
  const isWorkflow = id.startsWith('workflow:');
  const start = canRead(saved) ? [] : [`start a server whose charts are of version ${version}`];
  const end = isWorkflow ? `agent workflow cancel ${taskId}` : `agent cancel ${taskId}`;
  if (pending || !isWorkflow) return [...start, `end it: ${end}`].join(', or ');
  return [...start, 'start the workflow anew'].join(', or ');
};

/** A state was saved by a server with other charts, or it is broken. */
export class UnreadableStateError extends ServiceError<'internal'> {
  constructor(saved: Named, cause?: unknown) {
    const detail = canRead(saved)
      ? `the saved state of ${saved.id} cannot be restored: ${messageOf(cause)}`
      : `the state of ${saved.id} was saved by charts of version ${saved.version}, and this server knows ${versionsInWords(charts)}`;
    super('internal', { detail, remedy: remedyFor(saved) }, { cause });
  }
}
