import type { TaskView } from '../../actors/journal/task-view.ts';
import {
  type A2aMessage,
  type A2aTask,
  type Artifact,
  extensionUri,
  type Metadata,
  type StreamResponse,
  type TaskStatus,
  wireState,
} from './protocol.ts';
import { runIdOf, type TaskRun } from './read-run.ts';

const contextLabel = 'a2a-context:';

/** `_2C` for a comma: labels hold letters, digits and some signs. Labels survive in every tracker. */
export const labelOfContext = (contextId: string): string =>
  contextLabel +
  contextId.replace(
    /[^A-Za-z0-9:.-]/g,
    (sign) => `_${sign.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );

/** The client's own, else the id of the task. */
export const contextOf = ({ task_id, labels }: Pick<TaskView, 'task_id' | 'labels'>): string => {
  const label = labels.find((each) => each.startsWith(contextLabel));
  if (label === undefined) return task_id;
  return label
    .slice(contextLabel.length)
    .replace(/_([0-9a-f]{2})/g, (_, code: string) =>
      String.fromCharCode(Number.parseInt(code, 16)),
    );
};

const wireTime = (at: number): string => new Date(at).toISOString();

export interface Subject {
  readonly view: TaskView;
  readonly run: TaskRun;
}

interface RunIdentity {
  readonly id: string;
  readonly contextId: string;
}

export const runIdentity = ({ view, run }: Subject): RunIdentity => ({
  id: runIdOf(view.task_id, run),
  contextId: contextOf(view),
});

const message = (
  { id, contextId }: RunIdentity,
  said: { readonly by: 'user' | 'agent'; readonly text: string; readonly at: number },
  name: string,
): A2aMessage => ({
  messageId: `${id}-${name}`,
  role: said.by === 'user' ? 'ROLE_USER' : 'ROLE_AGENT',
  parts: [{ text: said.text }],
  contextId,
  taskId: id,
  metadata: { timestamp: wireTime(said.at) },
});

export const statusObject = (subject: Subject): TaskStatus => {
  const { state, says, at, generation } = subject.run;
  return {
    state: wireState(state),
    ...(says === null
      ? {}
      : {
          message: message(runIdentity(subject), { by: 'agent', text: says, at }, `s${generation}`),
        }),
    timestamp: wireTime(at),
  };
};

/** The parts that change from event to event. */
const changing = ({ view, run }: Subject) => ({
  task_id: view.task_id,
  attempt: run.attempt,
  phase: run.phase,
  progress: run.progress,
  generation: run.generation,
  ...(run.inputId === null ? {} : { input_id: run.inputId }),
});

export const changingMetadata = (subject: Subject): Metadata => ({
  [extensionUri]: changing(subject),
});

const metadataOf = (subject: Subject): Metadata => {
  const { view } = subject;
  return {
    [extensionUri]: {
      ...changing(subject),
      ...(view.role === undefined ? {} : { role: view.role }),
      title: view.title,
      dependencies: view.dependencies,
      unmet_dependencies: view.unmet_dependencies,
      usage: view.usage,
    },
  };
};

/** At most the latest `length` messages; undefined: all. */
const historyOf = (subject: Subject, length: number | undefined): readonly A2aMessage[] => {
  const { view, run } = subject;
  const first = { by: 'user', text: view.description, at: Date.parse(view.created_at) } as const;
  const before =
    run.before === null ? {} : { referenceTaskIds: [runIdOf(view.task_id, run.before)] };
  const all = [first, ...run.said].map((said, index) => ({
    ...message(runIdentity(subject), said, `m${index}`),
    ...(index === 0 ? before : {}),
  }));
  return length === undefined ? all : all.slice(Math.max(0, all.length - length));
};

export const transcriptId = 'transcript';

/** The artifacts that the journal has; the changes of files are added by the caller. */
export const artifactsOf = ({ run }: Subject): readonly Artifact[] => [
  ...(run.transcript === ''
    ? []
    : [
        {
          artifactId: transcriptId,
          name: 'What the agent wrote',
          parts: [{ text: run.transcript, mediaType: 'text/plain' }],
        },
      ]),
  ...(run.result === null || run.result === ''
    ? []
    : [
        {
          artifactId: 'results',
          name: 'Results',
          parts: [{ text: run.result, mediaType: 'text/markdown', filename: '30-results.md' }],
        },
      ]),
];

export const taskObject = (
  subject: Subject,
  {
    historyLength,
    artifacts,
  }: { readonly historyLength?: number | undefined; readonly artifacts?: readonly Artifact[] } = {},
): A2aTask => ({
  ...runIdentity(subject),
  status: statusObject(subject),
  ...(artifacts === undefined ? {} : { artifacts }),
  ...(historyLength === 0 ? {} : { history: historyOf(subject, historyLength) }),
  metadata: metadataOf(subject),
});

export const statusEvent = (subject: Subject): StreamResponse => {
  const { id, contextId } = runIdentity(subject);
  return {
    statusUpdate: {
      taskId: id,
      contextId,
      status: statusObject(subject),
      metadata: changingMetadata(subject),
    },
  };
};

export const artifactEvent = (
  subject: Subject,
  artifact: Artifact,
  more: { readonly append?: boolean; readonly lastChunk?: boolean } = {},
): StreamResponse => {
  const { id, contextId } = runIdentity(subject);
  return { artifactUpdate: { taskId: id, contextId, artifact, ...more } };
};
