import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type Document,
  isMap,
  isNode,
  isPair,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
} from 'yaml';
import { codeOf } from '../../actors/files/error-code.ts';
import { readRegular } from '../../actors/files/regular-file.ts';
import { countLines } from '../../actors/files/text.ts';
import { type Parsed, parseWithProblems, type SchemaProblem } from '../../http/schema-problems.ts';
import { isJsonObject } from '../../machines/json.ts';
import { messageOf } from '../../machines/message-of.ts';
import {
  type WorkflowDefinition,
  workflowDefinitionSchema,
} from '../../machines/workflow/workflow-definition.ts';
import {
  type FoundWorkflow,
  type NarrowedWorkflow,
  narrowWorkflow,
  workflowNarrowingSchema,
} from '../../machines/workflow/workflow-narrowing.ts';
import {
  type DeadEnd,
  type SearchResult,
  searchWorkflow,
} from '../../machines/workflow/workflow-search.ts';
import type { Project } from '../config/places/project.ts';
import { liesIn } from '../config/places/project-root.ts';
import { userFilesOf } from '../config/places/user-files.ts';
import { deepBracketIn, quietly } from '../roles/parse-role.ts';

export type LineOf = (path: readonly PropertyKey[]) => number;
type ParsedFile<Value> =
  | {
      readonly ok: true;
      readonly value: Value;
      /** The line of a key in the file, or of the last one on the way to it. */
      readonly lineOf: LineOf;
    }
  | { readonly ok: false; readonly problems: readonly string[] };

/** Small enough that no YAML takes long to parse. */
const workflowMaxBytes = 64 * 1024;
const shownProblemsAtMost = 20;

const someProblems = (problems: readonly string[]): readonly string[] => {
  const more = problems.length - shownProblemsAtMost;
  return more > 0 ? [...problems.slice(0, shownProblemsAtMost), `and ${more} more`] : problems;
};

/** Offset of the node that a path leads to, or of the last one on the way that exists. */
const offsetOf = (document: Document, path: readonly PropertyKey[]): number => {
  let node: unknown = document.contents;
  let offset = isNode(node) ? (node.range?.[0] ?? 0) : 0;
  for (const key of path) {
    if (isMap(node)) {
      const pair = node.items.find((each) => isPair(each) && String(each.key) === String(key));
      if (pair === undefined) return offset;
      if (isNode(pair.key)) offset = pair.key.range?.[0] ?? offset;
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(key)];
      if (isNode(node)) offset = node.range?.[0] ?? offset;
    }
  }
  return offset;
};

const nounOf: Readonly<Record<string, string>> = {
  phases: 'phase',
  steps: 'step',
  gates: 'gate',
  checks: 'check',
};

/** Names an entry of a list for people: a step by its id, else by its place. */
const nameOfEntry = (entry: unknown, at: number): string => {
  const { number, id, name, check } = isJsonObject(entry) ? entry : {};
  const own = [number, id, name, check].find((each) => each !== undefined);
  const isName = typeof own === 'number' || (typeof own === 'string' && own.length <= 40);
  return isName ? String(own) : `${at + 1}`;
};

/** `step build: by`; the keys alone where no list has a noun. */
const problemPath = (path: readonly PropertyKey[], whole: unknown): string => {
  const places: string[] = [];
  const keys: string[] = [];
  let value = whole;
  for (const [at, key] of path.entries()) {
    const list = value;
    value = Array.isArray(list) || isJsonObject(list) ? (list as never)[key] : undefined;
    const noun = nounOf[String(path[at - 1])];
    if (typeof key === 'number' && noun !== undefined) {
      keys.pop();
      places.push(`${noun} ${nameOfEntry(value, key)}`);
    } else keys.push(typeof key === 'number' ? `entry ${key + 1}` : String(key));
  }
  // The id of a step is known once in the file.
  const shown = places.length > 1 ? places.slice(1) : places;
  return [...(shown.length === 0 ? [] : [shown.join(', ')]), ...keys].join(': ');
};

const describeWorkflowProblem = (
  { path, problem, knownKeys }: SchemaProblem,
  whole: unknown,
): string => {
  const key = problemPath(path, whole);
  if (knownKeys === undefined) return `${key}: ${problem}`;
  const known = knownKeys.length === 0 ? '' : `; known are ${knownKeys.join(', ')}`;
  return `${key}: is not known here${known}`;
};

/** Without the place, which stands before it. */
const yamlProblem = (text: string): string => {
  if (text === 'Map keys must be unique') return 'this key stands twice';
  if (text === 'Maximum call stack size exceeded') return 'is nested too deeply';
  return text.startsWith('Source contains multiple documents')
    ? 'a second document begins after ---; a file has one workflow'
    : `not YAML: ${text}`;
};

/** An alias could grow to any size. */
const firstAlias = (document: Document.Parsed): { name: string; offset: number } | null => {
  let found: { name: string; offset: number } | null = null;
  visit(document, {
    Alias: (_, { source, range }) => {
      found = { name: source, offset: range?.[0] ?? 0 };
      return visit.BREAK;
    },
  });
  return found;
};

/** Each problem begins with the number of its line. `first`: the keys that a file begins with. */
const parseFile = <Value>(
  bytes: Uint8Array,
  first: string,
  parse: (value: unknown) => Parsed<Value>,
): ParsedFile<Value> => {
  if (bytes.length > workflowMaxBytes)
    return { ok: false, problems: [`has more than ${workflowMaxBytes} bytes`] };
  const lineCounter = new LineCounter();
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    const deep = deepBracketIn(text);
    if (deep !== null)
      return { ok: false, problems: [`line ${countLines(text, 0, deep)}: is nested too deeply`] };
    const document = parseDocument(text, quietly(lineCounter));
    const lineAt = (offset: number): string => `line ${lineCounter.linePos(offset).line}: `;
    const lineOf: LineOf = (path) => lineCounter.linePos(offsetOf(document, path)).line;
    const faults = [...document.errors, ...document.warnings];
    if (faults.length > 0)
      return {
        ok: false,
        problems: someProblems([
          ...new Set(faults.map(({ pos, message }) => `${lineAt(pos[0])}${yamlProblem(message)}`)),
        ]),
      };
    if (!isMap(document.contents))
      return { ok: false, problems: [`line 1: has no keys; such a file begins with ${first}`] };
    const alias = firstAlias(document);
    if (alias !== null) {
      const problem = `*${alias.name} is an alias; write out what it stands for`;
      return { ok: false, problems: [`${lineAt(alias.offset)}${problem}`] };
    }
    const whole: unknown = document.toJS({ maxAliasCount: 0 });
    const parsed = parse(whole);
    if (parsed.ok) return { ...parsed, lineOf };
    const problems = parsed.problems.map(
      (problem) => `line ${lineOf(problem.path)}: ${describeWorkflowProblem(problem, whole)}`,
    );
    return { ok: false, problems: someProblems(problems) };
  } catch (error) {
    const why = error instanceof TypeError ? 'not UTF-8' : `not YAML: ${messageOf(error)}`;
    return { ok: false, problems: [why] };
  }
};

export const parseWorkflow = (bytes: Uint8Array): ParsedFile<WorkflowDefinition> =>
  parseFile(bytes, 'name: <name>', (value) => parseWithProblems(workflowDefinitionSchema, value));

/** The definition with what a project's file asks for. */
const parseNarrowing = (
  bytes: Uint8Array,
  definition: WorkflowDefinition,
): ParsedFile<NarrowedWorkflow> =>
  parseFile(bytes, 'narrows: <name of the workflow>', (value) => {
    const parsed = parseWithProblems(workflowNarrowingSchema, value);
    return parsed.ok ? narrowWorkflow(definition, parsed.value) : parsed;
  });

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
