import { ServiceError } from '../../machines/errors.ts';
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

/** A way out for a person, when no running server can go on with a task. */
const remedyFor = ({ taskId, version }: Pick<SavedActor, 'taskId' | 'version'>): string =>
  taskId.startsWith('workflow:')
    ? `start a server whose charts are of version ${version}`
    : `start a server whose charts are of version ${version}, or end it: agent cancel ${taskId}`;

/** A state was saved by a server with other charts. */
export class UnreadableStateError extends ServiceError<'internal'> {
  constructor(saved: Pick<SavedActor, 'id' | 'taskId' | 'version'>) {
    const detail = `the state of ${saved.id} was saved by charts of version ${saved.version}, and this server knows ${versionsInWords(charts)}`;
    super('internal', { detail, remedy: remedyFor(saved) });
  }
}
