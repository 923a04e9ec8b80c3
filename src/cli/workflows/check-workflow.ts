import { basename, dirname, resolve } from 'node:path';
import { plural } from '../../machines/plural.ts';
import { searchWorkflow } from '../../machines/workflow-search.ts';
import type { CommandContext } from '../client/command-context.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { stripControls } from '../output/safe-text.ts';
import { UsageError } from '../words/usage-error.ts';
import {
  endProblem,
  fileOfWorkflow,
  narrowingFolder,
  readNarrowing,
  readWorkflow,
  workflowConfigs,
  workflowFolders,
} from './find-workflow.ts';
import type { ParsedWorkflow } from './parse-workflow.ts';

/** A definition, or a project's file with the definition that it narrows. */
const readAny = (root: string, folders: readonly string[], file: string): ParsedWorkflow => {
  if (dirname(file) !== narrowingFolder(root)) return readWorkflow(file);
  const name = basename(file, '.yml');
  const base = fileOfWorkflow(folders, name);
  if (base === null) return { ok: false, problems: [`narrows ${name}, which is no workflow`] };
  const parsed = readWorkflow(base);
  return parsed.ok ? readNarrowing(root, file, parsed.definition) : parsed;
};

/**
 * Checks a workflow file: its keys, and that every phase can end. `named` is a file, or the name of
 * a workflow. Needs no server.
 */
export const checkWorkflow = async (
  { project, config, cwd, env, io, json }: CommandContext,
  named: string | undefined,
): Promise<number> => {
  if (named === undefined) throw new UsageError('workflow check needs a file');
  const folders = workflowFolders(workflowConfigs(project, env, config));
  const file = fileOfWorkflow(folders, named) ?? resolve(cwd, named);
  const parsed = readAny(project.root, folders, file);
  if (!parsed.ok) {
    if (json) io.json({ file, ok: false, problems: parsed.problems, dead_end: null });
    else io.out(parsed.problems.map((problem) => stripControls(`${file}: ${problem}`)).join('\n'));
    return exitCodes.failed;
  }
  const { name, version, phases } = parsed.definition;
  const result = searchWorkflow(parsed.definition);
  const { states, deadEnd, isCut } = result;
  const problem = endProblem(result);
  const problems = isCut && problem !== null ? [problem] : [];
  if (json) io.json({ file, ok: problem === null, problems, dead_end: deadEnd, states });
  else if (problem === null)
    io.out(
      `${file}: ${name} ${version}: ${phases.length === 1 ? 'its phase' : `each of its ${phases.length} phases`} can end (${plural(states, 'state')} looked at)`,
    );
  else io.out(stripControls(`${file}: ${problem}`));
  return problem === null ? exitCodes.done : exitCodes.failed;
};
