import { ServiceError } from '../../machines/errors.ts';
import type { Thoroughness } from '../../machines/thoroughness.ts';
import type { StepChoice, WorkflowInput } from '../../machines/workflow/workflow-context.ts';
import type { WorkflowDefinition } from '../../machines/workflow/workflow-definition.ts';
import type { WorkflowSnapshot } from '../../machines/workflow/workflow-machine.ts';
import type { FoundWorkflow } from '../../machines/workflow/workflow-narrowing.ts';
import { workflowKey } from '../journal/replay/replay.ts';
import { persistedSnapshot, readEach } from '../journal/snapshots.ts';
import type { ActorReads, SavedActor } from '../store/port.ts';
import { fillIn, type WorkflowWords } from './planned-tasks.ts';

export interface StartWorkflow {
  /** The name of a definition. */
  readonly kind: string;
  /** The feature, or the question. */
  readonly name: string;
  readonly product?: string;
  readonly thoroughness?: Thoroughness;
  /** The optional steps that are done; the others are not. Absent: they are asked for. */
  readonly steps?: readonly string[];
  readonly decides?: 'person' | 'role';
  readonly verify?: readonly string[];
  readonly model?: string;
  /** The name of the caller. */
  readonly by?: string | undefined;
}

export interface StartPorts {
  /** The definition of a name, or why there is none. */
  readonly definition: (kind: string) => FoundWorkflow | string;
  /** The name of the project, for folders. */
  readonly project: string;
  readonly now: () => number;
}

export const badParam = (path: string, problem: string): ServiceError =>
  new ServiceError('invalid_params', { fields: [{ path, problem }] });

/** Lower case, with dashes: for names of folders. */
const slugOf = (text: string): string =>
  text
    .slice(0, 200)
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .replace(/[^a-z0-9-]/g, '')
    .replace(/^-+|(?<!-)-+$/g, '')
    .slice(0, 60)
    .replace(/(?<!-)-+$/, '');

const optionalSteps = ({ phases }: WorkflowDefinition): readonly string[] =>
  phases.flatMap(({ steps }) => steps.filter(({ when }) => when !== undefined).map(({ id }) => id));

const choicesFrom = (
  { definition, narrowed }: FoundWorkflow,
  steps: readonly string[] | undefined,
): readonly StepChoice[] => {
  const { without = [], file = '' } = narrowed ?? {};
  const leftOut = without.map((step) => ({
    step,
    selected: false,
    by: 'project',
    reason: `${file} leaves it out`,
  }));
  if (steps === undefined) return leftOut;
  const optional = optionalSteps(definition);
  const unknown = steps.find((step) => !optional.includes(step));
  if (unknown !== undefined)
    throw badParam(
      'steps',
      `has ${JSON.stringify(unknown)}; the optional steps of ${definition.name} are ${optional.join(', ') || 'none'}`,
    );
  const refused = steps.find((step) => without.includes(step));
  if (refused !== undefined) throw badParam('steps', `has ${refused}, which ${file} leaves out`);
  const chosen = optional
    .filter((step) => !without.includes(step))
    .map((step) => ({
      step,
      selected: steps.includes(step),
      by: 'start',
      reason: steps.includes(step) ? 'named in --phase0' : 'not named in --phase0',
    }));
  return [...leftOut, ...chosen];
};

/** An option that nothing reads would mislead. @throws invalid_params */
const requireUsed = (definition: WorkflowDefinition, request: StartWorkflow): void => {
  const { name, thoroughness, phases } = definition;
  const isAboutOptional = request.steps !== undefined || request.decides === 'role';
  if (isAboutOptional && optionalSteps(definition).length === 0)
    throw badParam('steps', `is not for ${name}, which has no optional steps`);
  if (request.thoroughness !== undefined && thoroughness === undefined)
    throw badParam('thoroughness', `is not for ${name}, which has no levels of it`);
  const verifies = phases.some(({ steps }) => steps.some(({ verify }) => verify));
  if ((request.verify ?? []).length > 0 && !verifies)
    throw badParam('verify', `is not for ${name}: none of its steps runs commands`);
};

/** @throws invalid_params */
export const inputFor = (
  { definition: definitionOf, project, now }: StartPorts,
  workflowId: string,
  request: StartWorkflow,
): WorkflowInput => {
  const found = definitionOf(request.kind);
  if (typeof found === 'string') throw badParam('kind', found);
  const { definition, narrowed } = found;
  requireUsed(definition, request);
  const name = request.name.replace(/\s+/g, ' ').trim();
  if (name === '') throw badParam('name', 'is empty');
  return {
    workflowId,
    definition,
    subject: {
      name,
      slug: slugOf(name) || workflowId,
      product: slugOf(request.product ?? project) || 'product',
      thoroughness: request.thoroughness ?? 'medium',
    },
    verify: request.verify ?? [],
    model: request.model ?? null,
    decides: request.decides ?? 'person',
    choices: choicesFrom(found, request.steps),
    narrowedBy: narrowed === null ? undefined : { file: narrowed.file, changes: narrowed.changes },
    startedAt: now(),
    by: request.by,
  };
};

interface NamedWorkflow extends WorkflowWords {
  readonly workflowId: string;
}

export const workflowOfSaved = (saved: SavedActor): NamedWorkflow => {
  const { context }: Pick<WorkflowSnapshot, 'context'> = persistedSnapshot(saved);
  return context;
};

/** The paths that hold the name of the workflow. Other places, such as docs/adr/, are for all. */
const ownPaths = (workflow: WorkflowWords): readonly string[] =>
  workflow.definition.phases
    .flatMap(({ steps }) => steps.flatMap(({ leaves }) => leaves))
    .filter((path) => path.includes('{{slug}}'))
    .map((path) => fillIn(workflow, path));

const isInFolderOrSame = (path: string, folder: string): boolean =>
  path === folder || (folder.endsWith('/') && path.startsWith(folder));

/** Two at once would overwrite what the other left. @throws invalid_params */
export const requireOwnFolders = (
  workflow: NamedWorkflow,
  others: readonly NamedWorkflow[],
): void => {
  const own = ownPaths(workflow);
  for (const other of others) {
    const theirs = ownPaths(other);
    const shared = own.find((path) =>
      theirs.some((each) => isInFolderOrSame(path, each) || isInFolderOrSame(each, path)),
    );
    if (shared === undefined) continue;
    const { workflowId, definition, subject } = other;
    throw badParam(
      'name',
      `is too much like that of ${workflowId} (${definition.name}: ${subject.name}), which is not over and writes to ${shared} too; give another name, wait for it, or end it with: agent workflow cancel ${workflowId}`,
    );
  }
};

/** Where reports of a task may be; empty without a workflow that is not over. */
export const reportPathsOf = async (
  store: Pick<ActorReads, 'openHosted'>,
  labels: readonly string[],
): Promise<readonly string[]> => {
  if (!labels.some((label) => label.startsWith(workflowKey('')))) return [];
  const open = readEach(await store.openHosted('workflow'), workflowOfSaved);
  const own = open.find(({ workflowId }) => labels.includes(workflowKey(workflowId)));
  if (own === undefined) return [];
  const reports = own.definition.phases
    .flatMap(({ gates }) => gates)
    .flatMap(({ checks }) => checks)
    .flatMap((check) => ('reports' in check ? check.reports : []));
  return [...new Set(reports.map((path) => fillIn(own, path)))];
};
