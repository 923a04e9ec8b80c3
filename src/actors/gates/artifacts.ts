import type { WorkFiles } from '../workspace/port.ts';
import { fail, type Judgement, pass, type StepEvidence } from './evidence.ts';

const fileMaxBytes = 16 * 1024 * 1024;

const artifactProblem = async (files: WorkFiles, path: string): Promise<string | null> => {
  const found = await files.list(path);
  if (found.length === 0) return `${path} is missing`;
  const changed = files.changed;
  if (changed === null) return `${path} cannot be checked: the attempt has no diff`;
  const own = found.filter((file) => changed.includes(file));
  if (own.length === 0) return `${path} is there, but not in the diff`;
  for (const file of own) {
    const text = await files.read(file, fileMaxBytes);
    if (text === null || text.trim() !== '') return null;
  }
  return `${path} is empty`;
};

/** Everything that a step must leave exists, is not empty, and is in the diff of its task. */
export const checkArtifacts = async ({
  leaves,
  files,
  taskId,
}: StepEvidence): Promise<Judgement> => {
  if (leaves.length === 0) return pass('has nothing to leave');
  const problems: string[] = [];
  for (const path of leaves) {
    const problem = await artifactProblem(files, path);
    if (problem !== null) problems.push(problem);
  }
  return problems.length === 0
    ? pass(`${leaves.join(', ')} in the diff of ${taskId}`)
    : fail(`${problems.join('; ')} (looked in the diff of ${taskId})`);
};

/** The diff has no path outside the allowed folders and files. */
export const checkOnlyChanges = (
  { files, taskId }: StepEvidence,
  allowed: readonly string[],
): Judgement => {
  const { changed } = files;
  if (changed === null)
    return fail(`${taskId} has no diff: its agent worked in the project's own folder`);
  const others = changed.filter(
    (path) => !allowed.some((each) => (each.endsWith('/') ? path.startsWith(each) : path === each)),
  );
  const shown = others.slice(0, 10).join(', ') + (others.length > 10 ? ', …' : '');
  return others.length === 0
    ? pass(`the diff of ${taskId} changes only ${allowed.join(', ')}`)
    : fail(`the diff of ${taskId} changes ${shown}; allowed is ${allowed.join(', ')}`);
};
