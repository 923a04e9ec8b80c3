export const a2aVersions = ['1.0', '0.3'] as const;
export type A2aVersion = (typeof a2aVersions)[number];

/** `a2a` of the configuration. */
export interface A2aRules {
  readonly versions: readonly A2aVersion[];
  /** A request without A2A-Version is one of 0.3, as A2A has it; else the name of its method says it. */
  readonly isStrict: boolean;
  /** The server as clients reach it, without a slash at its end; null: as they asked for the card. */
  readonly publicUrl: string | null;
}

/** The objects of A2A 1.0 as they are on the wire (ProtoJSON). */

/** In the order of their numbers, which begin with 1. */
export const taskStates = [
  'SUBMITTED',
  'WORKING',
  'COMPLETED',
  'FAILED',
  'CANCELED',
  'INPUT_REQUIRED',
  'REJECTED',
  'AUTH_REQUIRED',
] as const;
/** Without its prefix. */
export type A2aState = (typeof taskStates)[number];

export const wireState = (state: A2aState): string => `TASK_STATE_${state}`;

const terminalStates: ReadonlySet<A2aState> = new Set([
  'COMPLETED',
  'FAILED',
  'CANCELED',
  'REJECTED',
]);
export const isTerminal = (state: A2aState): boolean => terminalStates.has(state);
/** True for a state that waits for somebody outside. */
export const isInterrupted = (state: A2aState): boolean =>
  state === 'INPUT_REQUIRED' || state === 'AUTH_REQUIRED';

export type Metadata = Readonly<Record<string, unknown>>;

export interface Part {
  readonly text?: string;
  /** Base64. */
  readonly raw?: string;
  readonly url?: string;
  readonly data?: unknown;
  readonly filename?: string;
  readonly mediaType?: string;
  readonly metadata?: Metadata;
}

export interface A2aMessage {
  readonly messageId: string;
  readonly role: 'ROLE_USER' | 'ROLE_AGENT';
  readonly parts: readonly Part[];
  readonly contextId: string;
  readonly taskId: string;
  readonly metadata?: Metadata;
  readonly referenceTaskIds?: readonly string[];
}

export interface TaskStatus {
  /** `TASK_STATE_WORKING` */
  readonly state: string;
  readonly message?: A2aMessage;
  /** UTC, with milliseconds. */
  readonly timestamp: string;
}

export interface Artifact {
  readonly artifactId: string;
  readonly name?: string;
  readonly description?: string;
  readonly parts: readonly Part[];
  readonly metadata?: Metadata;
}

export interface A2aTask {
  readonly id: string;
  readonly contextId: string;
  readonly status: TaskStatus;
  readonly artifacts?: readonly Artifact[];
  readonly history?: readonly A2aMessage[];
  readonly metadata?: Metadata;
}

export type StreamResponse =
  | { readonly task: A2aTask }
  | {
      readonly statusUpdate: {
        readonly taskId: string;
        readonly contextId: string;
        readonly status: TaskStatus;
        readonly metadata?: Metadata;
      };
    }
  | {
      readonly artifactUpdate: {
        readonly taskId: string;
        readonly contextId: string;
        readonly artifact: Artifact;
        readonly append?: boolean;
        readonly lastChunk?: boolean;
      };
    };

/** Declared in the card, not required; its URI is the key of our metadata. */
export const extensionUri = 'urn:agent-task-server:a2a:task-graph:v1';
