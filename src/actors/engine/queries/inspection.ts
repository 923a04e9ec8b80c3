import type { AnyActorRef, InspectionEvent } from 'xstate';

/**
 * A message of XState's inspector protocol, as @statelyai/inspect sends it. It sends no microsteps
 * and no actions; they have the names that XState gives them.
 */
export interface InspectionMessage {
  readonly type:
    | '@xstate.actor'
    | '@xstate.event'
    | '@xstate.snapshot'
    | '@xstate.microstep'
    | '@xstate.action';
  readonly sessionId: string;
  readonly rootId: string;
  /** Epoch ms, as text. */
  readonly createdAt: string;
  readonly id: null;
  readonly _version: string;
  readonly [field: string]: unknown;
}

export interface Inspection {
  /** Never throws: XState would lose the actor's mailbox. */
  readonly observe: (event: InspectionEvent) => void;
  /** Sends the live actors, then every event, as JSON text without secrets. */
  subscribe(listener: (message: string) => void): () => void;
}

const inspectVersion = '0.7.2';
const actorsAtMost = 10_000;
const shownTextLength = 2_000;

const shortened = (text: string): string =>
  text.length > shownTextLength ? `${text.slice(0, shownTextLength)}…` : text;

/** Replaces functions by names, drops actors, cuts long texts. */
const withoutCycles = (key: string, value: unknown): unknown => {
  if (typeof value === 'function') return { type: value.name };
  if (typeof value === 'string') return key === 'definition' ? value : shortened(value);
  return key === 'children' || key === 'self' ? undefined : value;
};

const machineConfig = (actor: AnyActorRef): { readonly id?: string } | null => {
  const config = (actor as { readonly logic?: { readonly config?: unknown } }).logic?.config;
  return typeof config === 'object' && config !== null
    ? (config as { readonly id?: string })
    : null;
};

interface LooseSnapshot {
  readonly status?: string;
  readonly value?: unknown;
  readonly context?: unknown;
  readonly output?: unknown;
  readonly error?: unknown;
  readonly tags?: ReadonlySet<string>;
}

const plainSnapshot = (snapshot: unknown): object => {
  const { status, value, context, output, error, tags } = snapshot as LooseSnapshot;
  return {
    status,
    value,
    context,
    output,
    error: error instanceof Error ? error.message : error,
    tags: tags === undefined ? undefined : [...tags],
  };
};

const base = (actor: AnyActorRef, rootId: string) => ({
  sessionId: actor.sessionId,
  rootId,
  createdAt: String(Date.now()),
  id: null,
  _version: inspectVersion,
});

const actorMessage = (actor: AnyActorRef, rootId: string, snapshot: object): InspectionMessage => {
  const config = machineConfig(actor);
  const own = actor.id === actor.sessionId ? undefined : actor.id;
  const name = own ?? config?.id ?? actor.id;
  return {
    ...base(actor, rootId),
    type: '@xstate.actor',
    name,
    definition: JSON.stringify(config ?? { id: name }, withoutCycles),
    parentId: (actor as { readonly _parent?: AnyActorRef })._parent?.sessionId,
    snapshot,
  };
};

const inspectionMessage = (event: InspectionEvent): InspectionMessage | null => {
  const actor = event.actorRef as AnyActorRef;
  // The event comes before the actor has a snapshot.
  if (event.type === '@xstate.actor')
    return actorMessage(actor, event.rootId, { status: 'active' });
  if (event.type === '@xstate.event')
    return {
      ...base(actor, event.rootId),
      type: '@xstate.event',
      event: event.event,
      sourceId: event.sourceRef?.sessionId,
    };
  if (event.type === '@xstate.snapshot')
    return {
      ...base(actor, event.rootId),
      type: '@xstate.snapshot',
      event: event.event,
      snapshot: plainSnapshot(event.snapshot),
    };
  if (event.type === '@xstate.microstep')
    return {
      ...base(actor, event.rootId),
      type: '@xstate.microstep',
      event: event.event,
      value: (event.snapshot as LooseSnapshot).value,
    };
  if (event.type === '@xstate.action')
    return { ...base(actor, event.rootId), type: '@xstate.action', action: event.action };
  return null;
};

export const createInspection = (redact: (text: string) => string): Inspection => {
  const live = new Map<string, { readonly actor: AnyActorRef; readonly rootId: string }>();
  const listeners = new Set<(message: string) => void>();
  const textOf = (message: InspectionMessage): string =>
    redact(JSON.stringify(message, withoutCycles));

  const remember = (event: InspectionEvent): void => {
    const actor = event.actorRef as AnyActorRef;
    if (event.type === '@xstate.actor' && live.size < actorsAtMost)
      live.set(actor.sessionId, { actor, rootId: event.rootId });
    if (event.type === '@xstate.snapshot' && event.snapshot.status !== 'active')
      live.delete(actor.sessionId);
  };
  const tell = (event: InspectionEvent): void => {
    const message = listeners.size === 0 ? null : inspectionMessage(event);
    if (message === null) return;
    const text = textOf(message);
    for (const listener of listeners) listener(text);
  };

  return {
    observe: (event) => {
      try {
        remember(event);
        tell(event);
      } catch {
        // An inspector must not disturb the actor.
      }
    },
    subscribe: (listener) => {
      for (const { actor, rootId } of live.values())
        listener(textOf(actorMessage(actor, rootId, plainSnapshot(actor.getSnapshot()))));
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
};
