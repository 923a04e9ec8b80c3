import { ServiceError } from '../../machines/errors.ts';
import type { Thoroughness } from '../../machines/thoroughness.ts';
import type { StepChoice, WorkflowInput } from '../../machines/workflow-context.ts';
import type { WorkflowDefinition } from '../../machines/workflow-definition.ts';
import type { FoundWorkflow } from '../../machines/workflow-narrowing.ts';

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
export const slugOf = (text: string): string =>
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
    ...{ step, selected: false, by: 'project', reason: `${file} leaves it out` },
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
      ...{ step, selected: steps.includes(step), by: 'start' },
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
    ...{ workflowId, definition },
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
    ...(narrowed === null
      ? {}
      : { narrowedBy: { file: narrowed.file, changes: narrowed.changes } }),
    startedAt: now(),
  };
};
