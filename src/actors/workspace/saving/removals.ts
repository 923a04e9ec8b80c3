import { randomBytes } from 'node:crypto';
import { mkdirSync, renameSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../../machines/message-of.ts';
import { hasCode } from '../../files/error-code.ts';
import { unlock } from '../folders/removal.ts';
import { isPresent } from '../git/plain.ts';
import { removeInThread } from './snapshots.ts';

/** Moves folders out of the way at once and removes them in a thread, so that nobody waits. */
export const createRemovals = (folder: string) => {
  const place = join(folder, 'removed');
  const underWay = new Map<string, Promise<string | null>>();

  const removeNow = async (name: string): Promise<string | null> => {
    try {
      await removeInThread(join(place, name));
      return null;
    } catch (error) {
      return `${join(place, name)} could not be removed: ${messageOf(error)}`;
    } finally {
      underWay.delete(name);
    }
  };
  const remove = (name: string): Promise<string | null> => {
    const removal = underWay.get(name) ?? removeNow(name);
    underWay.set(name, removal);
    return removal;
  };

  return {
    giveUp: async (path: string): Promise<void> => {
      if (!(await isPresent(path))) return;
      mkdirSync(place, { recursive: true, mode: 0o700 });
      const name = randomBytes(12).toString('hex');
      try {
        renameSync(path, join(place, name));
      } catch (error) {
        if (!hasCode(error, 'EACCES', 'EPERM')) throw error;
        unlock(path);
        renameSync(path, join(place, name));
      }
      // The next sweep tries again, and reports what it cannot remove.
      void remove(name);
    },
    /** Removes what was given up and is still there. @returns what cannot be removed */
    sweep: async (): Promise<readonly string[]> => {
      const names = await readdir(place).catch((error: unknown) => {
        if (hasCode(error, 'ENOENT')) return [];
        throw error;
      });
      return (await Promise.all(names.map(remove))).flatMap((failure) => failure ?? []);
    },
  };
};

export type Removals = ReturnType<typeof createRemovals>;
