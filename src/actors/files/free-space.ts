import { accessSync, constants, statfsSync } from 'node:fs';

/** @throws what a write into the folder would throw, as far as a look can tell */
export const requireFreeSpace = (folder: string, bytes: number): void => {
  accessSync(folder, constants.W_OK);
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize < bytes)
    throw new Error(`ENOSPC: the disk of ${folder} is full (${bavail * bsize} bytes left)`);
};

/** Remembers a failed write, and tells without writing whether the next one would fail. */
export interface WriteCheck {
  /** `bytes`: the approximate size of the write. */
  failed(error: unknown, bytes: number): void;
  succeeded(): void;
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
      // What the look could not see, such as a broken disk, only a successful write disproves.
      if (!failure.canBeSeen) throw failure.error;
    },
  };
};
