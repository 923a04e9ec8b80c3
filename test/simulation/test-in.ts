import { namesIn } from './project.ts';
import { simulatedArgv } from './simulated-command.ts';
import type { World } from './world.ts';

export const candidateFolder = '/candidate/';

/** The command that tests a tree of the simulated project. Null: the folder is none of a merge. */
export const testIn = (
  { project, random, invariants }: World,
  root: string,
): readonly [string, ...string[]] | null => {
  if (project === null || !root.startsWith(candidateFolder)) return null;
  const tree = project.treeOf(root.slice(candidateFolder.length));
  const kinds = namesIn(tree).map((name) => project.change(name)?.kind);
  const ms = random.delay(10_000);
  if (kinds.includes('hangs')) return simulatedArgv(0, 10 ** 9);
  if (project.faultsOf(tree).length > 0) return simulatedArgv(1, ms);
  if (kinds.includes('flaky') && project.failsOnce(root)) return simulatedArgv(1, ms);
  invariants.merges.passed(tree);
  return simulatedArgv(0, ms);
};
