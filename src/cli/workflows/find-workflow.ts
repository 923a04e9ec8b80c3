import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { codeOf } from '../../actors/files/error-code.ts';
import { readRegular } from '../../actors/files/regular-file.ts';
import { messageOf } from '../../machines/message-of.ts';
import type { WorkflowDefinition } from '../../machines/workflow-definition.ts';
import type { FoundWorkflow, NarrowedWorkflow } from '../../machines/workflow-narrowing.ts';
import { type DeadEnd, type SearchResult, searchWorkflow } from '../../machines/workflow-search.ts';
import type { Project } from '../config/project.ts';
import { liesIn } from '../config/project-root.ts';
import { userFilesOf } from '../config/user-files.ts';
import {
  type LineOf,
  type ParsedFile,
  parseNarrowing,
  parseWorkflow,
  workflowMaxBytes,
} from './parse-workflow.ts';

const shippedFolder = fileURLToPath(new URL('../../../configs/workflows', import.meta.url));
const extension = '.yml';

/**
 * The configuration files that may have workflows beside them: the named one, then that of the user.
 * One inside the project has none, since a project's files may only narrow.
 */
export const workflowConfigs = (
  project: Pick<Project, 'defaultDir' | 'root'>,
  env: NodeJS.ProcessEnv,
  named: string | null,
): readonly string[] => {
  const own = userFilesOf(project, env).everywhere;
  return named === null || liesIn(named, [project.root]) ? [own] : [named, own];
};

/** The folders with workflow files: the user's own beside `config.json`, then those that are shipped. */
export const workflowFolders = (configs: readonly string[]): readonly string[] => [
  ...configs.map((file) => join(dirname(resolve(file)), 'workflows')),
  shippedFolder,
];

export const readWorkflow = (file: string): ParsedFile<WorkflowDefinition> => {
  try {
    if (!statSync(file).isFile()) return { ok: false, problems: ['is not a file'] };
    return parseWorkflow(readFileSync(file));
  } catch (error) {
    const code = codeOf(error);
    const problem =
      code === 'ENOENT' ? 'does not exist' : `cannot be read: ${code ?? messageOf(error)}`;
    return { ok: false, problems: [problem] };
  }
};

const workflowNamesIn = (folder: string): readonly string[] => {
  try {
    return readdirSync(folder)
      .filter((name) => name.endsWith(extension))
      .map((name) => basename(name, extension));
  } catch {
    return [];
  }
};

/** The file of a workflow: the first that has its name; null when none has. */
export const fileOfWorkflow = (folders: readonly string[], name: string): string | null => {
  const folder = folders.find((each) => workflowNamesIn(each).includes(name));
  return folder === undefined ? null : join(folder, `${name}${extension}`);
};

/** `line 9: phase 3 cannot end: …` and how it gets there, one step per line. */
const deadEndText = ({ phase, way, why }: DeadEnd, line: number): string =>
  [`line ${line}: phase ${phase} cannot end: ${why}`, ...way.map((step) => `  after ${step}`)].join(
    '\n',
  );

/** Null when it is proved that every phase can end. `lineOf`: of the file of the definition. */
export const endProblem = (
  { deadEnd, isCut, states }: SearchResult,
  lineOf: LineOf,
): string | null => {
  if (deadEnd !== null) return deadEndText(deadEnd, lineOf(deadEnd.path));
  return isCut
    ? `it is not proved that every phase can end: more than ${states} states follow from the choices of its optional steps; let checks read fewer of them, or divide the workflow`
    : null;
};

export const workflowNames = (folders: readonly string[]): readonly string[] =>
  [...new Set(folders.flatMap(workflowNamesIn))].sort();

/** Where a project's own file may narrow a workflow. No agent can write there. */
export const narrowingFolder = (projectRoot: string): string =>
  join(projectRoot, '.agent', 'workflows');

/** The file came with the repository: no link of it leads out, and no pipe is waited for. */
export const readNarrowing = (
  projectRoot: string,
  file: string,
  definition: WorkflowDefinition,
): ParsedFile<NarrowedWorkflow> => {
  try {
    if (realpathSync(dirname(file)) !== narrowingFolder(realpathSync(projectRoot)))
      return { ok: false, problems: ['is behind a symbolic link'] };
    const text = readRegular(file, workflowMaxBytes);
    return parseNarrowing(Buffer.from(text), definition);
  } catch (error) {
    return { ok: false, problems: [messageOf(error)] };
  }
};

/** The project's file for a workflow; null when it has none. */
export const narrowingFile = (projectRoot: string, name: string): string | null => {
  const folder = narrowingFolder(projectRoot);
  return workflowNamesIn(folder).includes(name) ? join(folder, `${name}${extension}`) : null;
};

const foldersOfProject = (folders: readonly string[]): readonly string[] =>
  folders.filter((folder) => folder !== shippedFolder);

const firstProblems = 3;
const unusableText = (file: string, problems: readonly string[]): string => {
  const more = problems.length - firstProblems;
  const shown = problems.slice(0, firstProblems).join('; ');
  return `cannot be used: ${file}: ${shown}${more > 0 ? `; see: agent workflow check ${file}` : ''}`;
};

/**
 * Finds a definition by its name, narrowed by the project's file, or says why there is none. A
 * broken one and a dead end are refused.
 */
export const workflowFinder =
  (configs: readonly string[], projectRoot: string) =>
  (name: string): FoundWorkflow | string => {
    const folders = workflowFolders(configs);
    const file = fileOfWorkflow(folders, name);
    if (file === null)
      return `${JSON.stringify(name.slice(0, 40))} is no workflow; there are ${workflowNames(folders).join(', ')}; yours are looked for in ${foldersOfProject(folders).join(' and ')}`;
    const parsed = readWorkflow(file);
    if (!parsed.ok) return unusableText(file, parsed.problems);
    const own = narrowingFile(projectRoot, name);
    const narrowed = own === null ? null : readNarrowing(projectRoot, own, parsed.value);
    if (own !== null && narrowed?.ok === false) return unusableText(own, narrowed.problems);
    const { definition, without, changes } =
      narrowed?.ok === true
        ? narrowed.value
        : { definition: parsed.value, without: [], changes: [] };
    const problem = endProblem(searchWorkflow(definition, without), parsed.lineOf);
    if (problem !== null) return unusableText(file, [problem]);
    const shown = own === null ? '' : relative(projectRoot, own);
    return { definition, narrowed: own === null ? null : { file: shown, without, changes } };
  };
