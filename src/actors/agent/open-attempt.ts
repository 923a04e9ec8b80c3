import type { Backend, StartConflict } from '../../machines/agent/agent-context.ts';
import { messageOf } from '../../machines/message-of.ts';
import type { AttemptInput, Failure, TaskId } from '../../machines/task.ts';
import type { TrackedTask } from '../../machines/tracked-task.ts';
import type { ImageFacts } from '../files/image.ts';
import type { EventType } from '../journal/event-types.ts';
import type { Images } from '../store/port.ts';
import type { OpenWorkspace, Workspace } from '../workspace/port.ts';
import { firstInstructions, type ReadProject } from './project-instructions.ts';
import { taskPrompt } from './prompt.ts';
import type { FirstMessage, Steps } from './steps.ts';

export interface AttemptPorts {
  readonly workspace: Workspace;
  readonly findTask: (taskId: TaskId) => Promise<TrackedTask | null>;
  /** Images of a task. */
  readonly images: Pick<Images, 'attached' | 'find'>;
  readonly readResults: (taskId: TaskId) => Promise<string | null>;
  readonly emit: (
    key: Pick<AttemptInput, 'taskId' | 'attempt'>,
    type: EventType,
    data: unknown,
  ) => void;
  readonly stepsOf: (attempt: Pick<AttemptInput, 'taskId' | 'attempt'>) => Promise<Steps>;
  /** False where work gets into the user's branch that no person looked at. */
  readonly isBranchReviewed: () => boolean;
  /** Makes a new folder ready for its agent. @returns why it could not */
  readonly setUp: SetUp;
}

export interface SetUpFolder {
  readonly failure: Failure | null;
  /** Sentences for the agent. */
  readonly notes: readonly string[];
}
export type SetUp = (
  attempt: AttemptInput,
  workspace: OpenWorkspace,
  signal: AbortSignal,
) => Promise<SetUpFolder>;

export interface OpenedAttempt {
  readonly task: TrackedTask;
  readonly workspace: OpenWorkspace;
  readonly steps: Steps;
  /** The task and the results of its dependencies; the same in every process. */
  readonly first: FirstMessage;
  readonly readProject: ReadProject;
  /** The reason why the agent cannot begin in its folder; null if it can. */
  readonly failure: Failure | null;
  /** Sentences for the agent of an attempt that goes on in a new folder. */
  readonly notes: readonly string[];
}

export const folderWaitLog = {
  level: 'info',
  message: 'waiting: another attempt is changing the project folder',
};

const copyLog = (copies: readonly string[]) => ({
  level: 'info',
  message: `makes the worktree, with a copy of ${copies.join(', ')}`,
});

const readDependencies = async (task: TrackedTask, ports: AttemptPorts) =>
  Promise.all(
    task.dependencies.map(async (id) => ({
      id,
      title: (await ports.findTask(id).catch(() => null))?.title ?? id,
      results: await ports.readResults(id),
      changes: (await ports.workspace.diff(id, null).catch(() => null))?.patch ?? '',
    })),
  );

/** Limit of the search for the work that an attempt builds on. */
const earlierTasksAtMost = 200;

/** The dependencies of a task; one without an agent's work is replaced by its own dependencies. */
const workBefore = async (
  task: TrackedTask,
  { findTask, readResults }: AttemptPorts,
): Promise<readonly TaskId[]> => {
  const found = new Set<TaskId>();
  const open = [...task.dependencies];
  const seen = new Set(open);
  for (let id = open.shift(); id !== undefined; id = open.shift()) {
    found.add(id);
    if (seen.size > earlierTasksAtMost || (await readResults(id)) !== null) continue;
    const further = (await findTask(id))?.dependencies ?? [];
    open.unshift(...further.filter((each) => !seen.has(each)));
    for (const each of further) seen.add(each);
  }
  return [...found];
};

const conflictLog = ({ taskId, branch, files }: StartConflict) => ({
  level: 'warn',
  message: `works without the work of ${taskId} (${branch}), which conflicts${files.length === 0 ? '' : ` in ${files.join(', ')}`}`,
});

const none = { text: '', bytes: 0 };

/** Assistants read those files themselves. */
const instructionsFor = async (
  input: AttemptInput & { readonly backend: Backend },
  readProject: ReadProject,
  { emit }: AttemptPorts,
): Promise<typeof none> => {
  if (input.backend !== 'builtin') return none;
  try {
    return (await readProject(firstInstructions)) ?? none;
  } catch (error) {
    const message = `the agent works without the project's AGENTS.md: ${messageOf(error)}`;
    emit(input, 'log', { level: 'warn', message });
    return none;
  }
};

const nameOfImage = ({ name, digest }: ImageFacts): string => name || `image ${digest.slice(0, 8)}`;

/** Written once, with a log entry for each conflict. */
const firstMessage = async (
  { task, steps, readProject }: Pick<OpenedAttempt, 'task' | 'steps' | 'readProject'>,
  { notes, conflicts }: OpenWorkspace,
  input: AttemptInput & { readonly backend: Backend },
  ports: AttemptPorts,
): Promise<FirstMessage> => {
  const { id, title, description } = task;
  const { attempt, review } = input;
  const { text: instructions, bytes } = await instructionsFor(input, readProject, ports);
  const attached = await ports.images.attached(id);
  const images = attached.map(({ digest, mediaType }) => ({ digest, mediaType }));
  const text = taskPrompt({
    id,
    title,
    description,
    notes,
    instructions,
    review,
    // An assistant gets them as files.
    images: input.backend === 'builtin' ? attached.map(nameOfImage) : [],
    dependencies: await readDependencies(task, ports),
  });
  for (const conflict of conflicts)
    ports.emit({ taskId: id, attempt }, 'log', conflictLog(conflict));
  const first = {
    text,
    instructionBytes: bytes,
    ...(images.length === 0 ? {} : { images }),
  };
  await steps.keepPrompt(first);
  return first;
};

/** May be called again, in another process too. @throws when the task or its folder is gone */
export const openAttempt = async (
  input: AttemptInput & { readonly backend: Backend },
  ports: AttemptPorts,
  signal: AbortSignal,
): Promise<OpenedAttempt> => {
  const { taskId, attempt } = input;
  const task = await ports.findTask(taskId);
  if (task === null) throw new Error(`task ${taskId} is gone from the tracker`);
  const steps = await ports.stepsOf({ taskId, attempt });
  const known = steps.prompt();
  const { copies } = ports.workspace;
  if (known === null && copies.length > 0) ports.emit(input, 'log', copyLog(copies));
  const workspace = await ports.workspace.open(input, await workBefore(task, ports), signal);
  signal.throwIfAborted();
  const readProject: ReadProject = async (read) =>
    ports.isBranchReviewed() ? ports.workspace.readProject(input, read) : null;
  const opened = { task, workspace, steps, readProject };
  if (known !== null && !workspace.isNew && workspace.taken === undefined)
    return { ...opened, first: known, failure: null, notes: [] };
  const { failure, notes } = await ports.setUp(input, workspace, signal);
  if (failure !== null || known !== null)
    return { ...opened, first: known ?? { text: '', instructionBytes: 0 }, failure, notes };
  const told = { ...workspace, notes: [...workspace.notes, ...notes] };
  return {
    ...opened,
    first: await firstMessage(opened, told, input, ports),
    failure: null,
    notes: [],
  };
};
