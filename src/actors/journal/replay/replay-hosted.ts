import { isDeepStrictEqual } from 'node:util';
import {
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type EventObject,
  initialTransition,
  transition,
} from 'xstate';
import type { ActorReads, Entry, EntryReads, HostedKind } from '../../store/port.ts';
import { persistedSnapshot, readEach } from '../snapshots.ts';
import { type ReplayedStep, wrongStep } from './replay.ts';

/** The name of an actor's row in the store; of a workflow also the label of its tasks. */
export const hostedKey = (kind: HostedKind, id: string): string => `${kind}:${id}`;
export const workflowKey = (workflowId: string): string => hostedKey('workflow', workflowId);

/** Cause of the first entry of an actor. */
export interface HostedStart extends EventObject {
  readonly type: 'xstate.init';
  readonly input: unknown;
}

export interface ReplayedActor {
  readonly steps: readonly ReplayedStep[];
  /** Null without a first entry. */
  readonly snapshot: AnyMachineSnapshot | null;
}

const isStart = (event: EventObject): event is HostedStart => event.type === 'xstate.init';

/** Runs a chart over the entries of an actor, without effects. */
export const foldHosted = (
  kind: HostedKind,
  machine: AnyStateMachine,
  entries: readonly Entry[],
): ReplayedActor => {
  let snapshot: AnyMachineSnapshot | null = null;
  const steps: ReplayedStep[] = [];
  for (const { type, seq, at, data, cause } of entries) {
    if (type !== kind || cause === null) continue;
    const recorded: { readonly value: unknown } = JSON.parse(data);
    const event: EventObject = JSON.parse(cause);
    if (isStart(event)) [snapshot] = initialTransition(machine, event.input);
    else if (snapshot !== null) [snapshot] = transition(machine, snapshot, event);
    const state = snapshot?.value ?? null;
    steps.push({
      ...{ seq, at: new Date(at).toISOString(), attempt: 0 },
      ...{ machine: kind, event: event.type, state },
      same: isDeepStrictEqual(state, recorded.value),
    });
  }
  return { steps, snapshot };
};

/** One sentence on how the saved state differs from the replayed one; null when they are equal. */
export const hostedDifference = async (
  store: Pick<ActorReads, 'actor'> & Pick<EntryReads, 'read'>,
  kind: HostedKind,
  id: string,
  { steps, snapshot }: ReplayedActor,
): Promise<string | null> => {
  const wrong = wrongStep(steps);
  if (wrong !== null) return wrong;
  const saved = await store.actor(hostedKey(kind, id));
  if (saved === null || snapshot === null) return null;
  const after = steps.at(-1)?.seq ?? 0;
  // It may have gone on meanwhile.
  if ((await store.read({ taskId: id, after, limit: 1 })).length > 0) return null;
  const [kept] = readEach([saved], persistedSnapshot);
  if (kept === undefined) return `the saved state of the ${kind} cannot be read`;
  const { value, context } = kept;
  const replayed = JSON.parse(JSON.stringify({ value: snapshot.value, context: snapshot.context }));
  return isDeepStrictEqual({ value, context }, replayed)
    ? null
    : `the saved state of the ${kind} is not what its journal makes of it (${JSON.stringify(snapshot.value)})`;
};
