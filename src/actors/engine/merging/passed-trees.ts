import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { Evidence } from '../../../machines/merge-queue/merge-queue-context.ts';
import { writeFileAtomically } from '../../files/atomic-write.ts';

/** The last trees that passed, each with what it was tested with; another start knows them, too. */
export interface PassedTrees {
  find(test: TreeTest): Evidence | undefined;
  keep(test: TreeTest, evidence: Evidence): Promise<void>;
}

export interface TreeTest {
  readonly tree: string;
  readonly commands: readonly string[];
  /** The commands of the setup. */
  readonly setup: readonly string[];
}

const passedSchema = z.array(
  z.tuple([z.string(), z.object({ tested_at: z.string(), tested_seconds: z.number() })]),
);

const treesAtMost = 500;
/** A test also sees programs of the machine, which change without the tree. */
const keptMs = 24 * 3_600_000;

/** A file that cannot be read knows nothing: trees are tested again. */
const readPassed = (file: string | null): z.infer<typeof passedSchema> => {
  try {
    return file === null ? [] : passedSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return [];
  }
};

const keyOf = ({ tree, commands, setup }: TreeTest): string =>
  createHash('sha256')
    .update(JSON.stringify([tree, commands, setup]))
    .digest('hex');

/** @param file null: they are forgotten with the process */
export const createPassedTrees = (file: string | null, now: () => number): PassedTrees => {
  const passed = new Map<string, Evidence>(readPassed(file));
  let writing = Promise.resolve();
  const isRecent = ({ tested_at }: Evidence): boolean => Date.parse(tested_at) > now() - keptMs;
  return {
    find: (test) => {
      const evidence = passed.get(keyOf(test));
      return evidence !== undefined && isRecent(evidence) ? evidence : undefined;
    },
    keep: async (test, evidence) => {
      passed.delete(keyOf(test));
      passed.set(keyOf(test), evidence);
      for (const [oldest] of [...passed].slice(0, -treesAtMost)) passed.delete(oldest);
      if (file === null) return;
      writing = writing
        .then(() => writeFileAtomically(file, JSON.stringify([...passed])))
        // It lands all the same.
        .catch(() => {});
      await writing;
    },
  };
};
