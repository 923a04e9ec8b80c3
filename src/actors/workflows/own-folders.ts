import type { WorkflowSnapshot } from '../../machines/workflow-machine.ts';
import { persistedSnapshot } from '../journal/snapshots.ts';
import type { SavedActor } from '../store/port.ts';
import { fillIn, type WorkflowWords } from './planned-tasks.ts';
import { badParam } from './start-input.ts';

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
