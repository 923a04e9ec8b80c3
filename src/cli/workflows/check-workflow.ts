import { basename, dirname, resolve } from 'node:path';
import { plural } from '../../machines/plural.ts';
import type { WorkflowDefinition } from '../../machines/workflow/workflow-definition.ts';
import type { NarrowedWorkflow } from '../../machines/workflow/workflow-narrowing.ts';
import { searchWorkflow } from '../../machines/workflow/workflow-search.ts';
import type { CommandContext } from '../client/command-context.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { stripControls } from '../output/safe-text.ts';
import { UsageError } from '../words/usage-error.ts';
import {
  endProblem,
  fileOfWorkflow,
  type LineOf,
  narrowingFile,
  narrowingFolder,
  readNarrowing,
  readWorkflow,
  workflowConfigs,
  workflowFolders,
  workflowNames,
} from './find-workflow.ts';

interface CheckedWorkflow {
  /** The file that was asked for. */
  readonly file: string;
  /** The file with the whole definition. */
  readonly base: string;
  readonly lineOf: LineOf;
  readonly definition: WorkflowDefinition;
  /** The project's file that narrows it. */
  readonly narrowed: { readonly file: string; readonly value: NarrowedWorkflow } | null;
}

type ReadOutcome =
  | { readonly ok: true; readonly value: CheckedWorkflow }
  | { readonly ok: false; readonly file: string; readonly problems: readonly string[] };

const withNarrowing = (
  root: string,
  file: string,
  base: string,
  own: string | null,
): ReadOutcome => {
  const parsed = readWorkflow(base);
  if (!parsed.ok) return { ok: false, file: base, problems: parsed.problems };
  const { value: definition, lineOf } = parsed;
  const found = { file, base, lineOf };
  if (own === null) return { ok: true, value: { ...found, definition, narrowed: null } };
  const narrowing = readNarrowing(root, own, definition);
  if (!narrowing.ok) return { ok: false, file: own, problems: narrowing.problems };
  const { value } = narrowing;
  return {
    ok: true,
    value: { ...found, definition: value.definition, narrowed: { file: own, value } },
  };
};

/** A definition with the project's file that narrows it; `named` is either file, or its name. */
const readAny = (
  root: string,
  folders: readonly string[],
  cwd: string,
  named: string,
): ReadOutcome => {
  const known = fileOfWorkflow(folders, named);
  if (known !== null) return withNarrowing(root, known, known, narrowingFile(root, named));
  const file = resolve(cwd, named);
  if (dirname(file) !== narrowingFolder(root)) return withNarrowing(root, file, file, null);
  const name = basename(file, '.yml');
  const base = fileOfWorkflow(folders, name);
  if (base !== null) return withNarrowing(root, file, base, file);
  const names = workflowNames(folders).join(', ');
  const problem = `narrows ${name}, which is no workflow; there are ${names}`;
  return { ok: false, file, problems: [problem] };
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
  const answer = readAny(project.root, folders, cwd, named);
  if (!answer.ok) {
    const { file, problems } = answer;
    if (json) io.json({ file, ok: false, problems, dead_end: null });
    else io.out(problems.map((problem) => stripControls(`${file}: ${problem}`)).join('\n'));
    return exitCodes.failed;
  }
  const { file, base, lineOf, definition, narrowed } = answer.value;
  const { name, version, phases } = definition;
  const result = searchWorkflow(definition, narrowed?.value.without);
  const { states, deadEnd, isCut } = result;
  const problem = endProblem(result, lineOf);
  const problems = isCut && problem !== null ? [problem] : [];
  const dead_end =
    deadEnd === null
      ? null
      : {
          file: base,
          line: lineOf(deadEnd.path),
          phase: deadEnd.phase,
          way: deadEnd.way,
          why: deadEnd.why,
        };
  const narrowed_by =
    narrowed === null ? undefined : { file: narrowed.file, changes: narrowed.value.changes };
  if (json) io.json({ file, ok: problem === null, problems, dead_end, states, narrowed_by });
  else if (problem === null)
    io.out(
      `${file}: ${name} ${version}: ${phases.length === 1 ? 'its phase' : `each of its ${phases.length} phases`} can end (${plural(states, 'state')} looked at)`,
    );
  else io.out(stripControls(`${base}: ${problem}`));
  if (!json && narrowed_by !== undefined)
    io.out(
      stripControls(
        `narrowed by ${narrowed_by.file}: ${narrowed_by.changes.join('; ') || 'nothing'}`,
      ),
    );
  return problem === null ? exitCodes.done : exitCodes.failed;
};
