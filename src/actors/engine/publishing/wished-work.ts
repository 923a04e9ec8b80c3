import type { Journal } from '../../journal/journal.ts';
import { type SnapshotReads, savedSnapshot } from '../../journal/snapshots.ts';
import type { Entry, EntryReads } from '../../store/port.ts';
import type { PublishSettings } from '../attempts/settings.ts';
import type { HostPorts } from '../hosting/host.ts';
import { requireId } from '../queries/task-id.ts';

interface WishPorts extends Pick<HostPorts, 'log'> {
  readonly journal: Pick<Journal, 'onOwnCommit'>;
  readonly settings: () => Pick<PublishSettings, 'publish'>;
  readonly store: SnapshotReads & Pick<EntryReads, 'read' | 'lastSeq'>;
  /** Whether this attempt of the task was published, or asked to be. */
  readonly isPublished: (entry: Entry) => Promise<boolean>;
  readonly publish: (entry: Entry) => Promise<unknown>;
}

/**
 * Entries that are looked at after a start: a task is published at once when it completes, so what a
 * server missed is among its last ones.
 */
const missedAtMost = 1_000;

/**
 * Publishes complete work by itself where its run, or the configuration, wishes it; also what was
 * completed when the server died before it could.
 */
export const publishWished = (ports: WishPorts): void => {
  const { journal, store, settings, log, isPublished, publish } = ports;
  /** What its run said; undefined for one that began before the configuration wished it. */
  const wishOf = async ({ taskId }: Entry): Promise<boolean | undefined> =>
    (await savedSnapshot(store, requireId(taskId))).context.options?.publish;
  const guarded = (entry: Entry, work: () => Promise<unknown>): void =>
    void work().catch((error: unknown) =>
      log('could not publish complete work', { task: entry.taskId, error }),
    );
  journal.onOwnCommit((entries) => {
    for (const entry of entries)
      if (entry.type === 'completed')
        guarded(entry, async () => {
          if ((await wishOf(entry)) ?? settings().publish === 'when_complete') await publish(entry);
        });
  });
  const publishMissed = async (): Promise<void> => {
    const after = Math.max(0, (await store.lastSeq()) - missedAtMost);
    for (const entry of await store.read({ after, limit: missedAtMost }))
      if (entry.type === 'completed')
        guarded(entry, async () => {
          if ((await wishOf(entry)) === true && !(await isPublished(entry))) await publish(entry);
        });
  };
  publishMissed().catch((error: unknown) => log('could not look for work to publish', { error }));
};
