import { accessSync, constants, statfsSync } from 'node:fs';

/** Throws what a write into a folder would, as far as looking can tell. */
export const requireFreeSpace = (folder: string, bytes: number): void => {
  accessSync(folder, constants.W_OK);
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize < bytes) throw new Error(`ENOSPC: the disk of ${folder} is full (${bavail * bsize} bytes left)`);
};

/** Remembers a write that failed, and says without writing whether the next one would fail. */
export interface WriteCheck {
  /** `bytes`: what the write needed, about. */
  failed(error: unknown, bytes: number): void;
  succeeded(): void;
  /** Throws why a write would fail. */
  require(bytes: number): void;
}

export const createWriteCheck = (folder: string): WriteCheck => {
  let failure: { readonly error: unknown; readonly canBeSeen: boolean } | null = null;
  const isSeen = (bytes: number): boolean => {
    try {
      requireFreeSpace(folder, bytes);
      return false;
    } catch {
      return true;
    }
  };
  return {
    failed: (error, bytes) => {
      failure = { error, canBeSeen: isSeen(bytes) };
    },
    succeeded: () => {
      failure = null;
    },
    require: (bytes) => {
      if (failure === null) return;
      requireFreeSpace(folder, bytes);
      // What looking did not see then, such as a broken disk, only a write that succeeds can disprove.
      if (!failure.canBeSeen) throw failure.error;
    },
  };
};
