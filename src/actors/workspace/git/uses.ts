import { rmSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isAlive } from '../../process/pid.ts';

interface KeptUse {
  readonly key: string;
  readonly dir: string;
}

export interface Use {
  readonly dir: string;
  /** An empty folder, for this use alone. */
  readonly temporary: string;
  release(): Promise<void>;
}

const keptMs = 10_000;
const mostKept = 4;
/** The folders of this process: an old folder may name the same process id. */
const foldersOfProcess = new Set<string>();
let kept: readonly KeptUse[] = [];
let idle: NodeJS.Timeout | undefined;

const forget = (some: readonly KeptUse[]): void => {
  kept = kept.filter((each) => !some.includes(each));
  for (const { dir } of some) {
    rmSync(dir, { recursive: true, force: true });
    foldersOfProcess.delete(dir);
  }
};
process.once('exit', () => forget(kept));

/**
 * Takes a folder of ours with the content of `make`: made anew, or kept from the last use with the
 * same key. It is kept for seconds, since making it costs more than using it.
 */
export const takeUse = async (
  folder: string,
  key: string,
  make: (dir: string) => Promise<void>,
): Promise<Use> => {
  const before = kept.find((each) => each.key === key);
  kept = kept.filter((each) => each !== before);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const dir = before?.dir ?? (await mkdtemp(join(folder, `use-${process.pid}-`)));
  foldersOfProcess.add(dir);
  const own = { key, dir };
  const temporary = join(dir, 'temporary');
  try {
    if (before === undefined) await make(dir);
    await mkdir(temporary);
  } catch (error) {
    forget([own]);
    throw error;
  }
  return {
    dir,
    temporary,
    release: async () => {
      await rm(temporary, { recursive: true, force: true });
      kept = [own, ...kept];
      forget(kept.slice(mostKept));
      clearTimeout(idle);
      idle = setTimeout(() => forget(kept), keptMs).unref();
    },
  };
};

const madeBy = /^use-(\d+)-/;

/** Removes what processes left that ended in the middle of a use. */
export const removeDeadUses = async (folder: string): Promise<void> => {
  for (const name of await readdir(folder).catch(() => [])) {
    const [, pid] = madeBy.exec(name) ?? [];
    if (pid === undefined || foldersOfProcess.has(join(folder, name))) continue;
    if (Number(pid) === process.pid || !isAlive(Number(pid)))
      await rm(join(folder, name), { recursive: true });
  }
};
