import { z } from 'zod';
import { commitPatiently } from '../agent/patient-commit.ts';
import { changesMade } from '../agent/steps.ts';
import type { Journal } from '../journal/journal.ts';
import type { ActorReads, UsageReads } from '../store/port.ts';
import type { NamedAttempt, WorkTravel } from '../workspace/port.ts';

/**
 * The step that says which server had the folder of an attempt last. It stays when the attempt is
 * over.
 */
const folderStep = 'folder';
const folderSchema = z.object({
  server: z.string(),
  /** The last change of the agent when that server took the folder without it; else null. */
  lacks: z.string().nullable(),
  /** True until it has the folder: if it dies meanwhile, it takes it again. */
  taking: z.boolean(),
  /** Made for this attempt; only the store has it. */
  key: z.string(),
});

export interface HolderPorts {
  readonly store: Pick<ActorReads, 'steps'> & Pick<UsageReads, 'attempts'>;
  readonly journal: Pick<Journal, 'commit'>;
  /** The name of this server. */
  readonly server: string;
}

const look = async (store: Pick<ActorReads, 'steps'>, { taskId, attempt }: NamedAttempt) => {
  const steps = await store.steps(taskId, attempt);
  const intent = steps.find(({ key }) => key === folderStep)?.intent ?? null;
  return {
    holder: intent === null ? null : folderSchema.parse(JSON.parse(intent)),
    keys: steps.map(({ key }) => key),
    lastChange: changesMade(steps).at(-1) ?? null,
  };
};

/** Null when no server had its folder while they shared tasks. */
const keyOf = async (
  store: Pick<ActorReads, 'steps'>,
  attempt: NamedAttempt,
): Promise<string | null> => (await look(store, attempt)).holder?.key ?? null;

/** Removes what an attempt has in the common repository. @returns why it could not, or null */
export const createForgetWork =
  (travel: WorkTravel | null, store: Pick<ActorReads, 'steps'>) =>
  async ({ taskId, attempt }: NamedAttempt): Promise<string | null> => {
    if (travel === null || !travel.hasRepository) return null;
    const key = await keyOf(store, { taskId, attempt });
    return key === null ? null : travel.remove({ taskId, attempt, key });
  };

/** Holders of the folders of attempts, as the store says it. */
export const createFolderHolders = ({ store, journal, server }: HolderPorts) => {
  return {
    look: (attempt: NamedAttempt) => look(store, attempt),
    keyOf: (attempt: NamedAttempt) => keyOf(store, attempt),
    hold: async (
      { taskId, attempt }: NamedAttempt,
      state: Omit<z.infer<typeof folderSchema>, 'server'>,
      signal: AbortSignal | undefined,
    ): Promise<void> => {
      const intent = JSON.stringify({ server, ...state });
      const step = { taskId, attempt, key: folderStep, intent, result: null };
      await commitPatiently(journal, { entries: [], step }, signal);
    },
  };
};

export type FolderHolders = ReturnType<typeof createFolderHolders>;

/**
 * True when a folder as `step` left it has the last change. The folder is kept before the result of
 * its step is saved, so it may be ahead of the store. `keys`: the steps, in their order.
 */
export const hasLastChange = (
  keys: readonly string[],
  lastChange: string | null,
  step: string,
): boolean => {
  const last = lastChange === null ? -1 : keys.indexOf(lastChange);
  const key = step.replace(/:part$/, '');
  // A part of a run is older than its end.
  return key === step ? keys.indexOf(key) >= last : keys.indexOf(key) > last;
};
