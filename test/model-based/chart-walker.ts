import {
  type ActorScope,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type AnyTransitionDefinition,
  createActor,
  type EventObject,
} from 'xstate';
import { nodesOf } from '../machines/chart.ts';

export type Edge = AnyTransitionDefinition;

/**
 * Every edge of a chart: what an event takes, and what it takes by itself. One branch of a guard is
 * one edge.
 */
export const everyEdge = (machine: AnyStateMachine): readonly Edge[] =>
  nodesOf(machine.root).flatMap((node) =>
    [...node.transitions.values(), ...(node.always ?? [])].flat(),
  ) as Edge[];

const guardName = ({ guard }: Edge): string => {
  if (guard === undefined) return '';
  const { type, params } = guard as { type?: string; params?: unknown };
  return ` [${type ?? String(guard)}${typeof params === 'object' ? ` ${JSON.stringify(params)}` : ''}]`;
};

const sameEvent = (machine: AnyStateMachine, edge: Edge): readonly Edge[] =>
  everyEdge(machine).filter(
    ({ source, eventType }) => source === edge.source && eventType === edge.eventType,
  );

/** `queued.checking | DEADLINE #2 [deadlinePassed] -> queued.refused` */
export const edgeName = (machine: AnyStateMachine, edge: Edge): string => {
  const place = ({ path }: { readonly path: readonly string[] }): string =>
    path.join('.') || '(root)';
  const target = edge.target === undefined ? '' : ` -> ${edge.target.map(place).join()}`;
  const number = sameEvent(machine, edge).indexOf(edge) + 1;
  return `${place(edge.source)} | ${edge.eventType || 'always'} #${number}${guardName(edge)}${target}`;
};

/** Takes pure steps on a chart and says which edges each took. No work is ever started. */
export const createWalker = <Snapshot extends AnyMachineSnapshot>(
  machine: AnyStateMachine,
  input: unknown,
) => {
  let taken: Edge[] = [];
  const actor = createActor(machine, {
    input,
    inspect: (seen) => {
      if (seen.type === '@xstate.microstep') taken.push(...seen._transitions);
    },
  });
  const nothing = (): void => {};
  const scope = {
    self: actor,
    system: actor.system,
    id: '',
    sessionId: '',
    logger: nothing,
    defer: nothing,
    emit: nothing,
    stopChild: nothing,
    actionExecutor: nothing,
  } as unknown as ActorScope<AnyMachineSnapshot, EventObject>;
  return {
    first: actor.getSnapshot() as Snapshot,
    step: (
      before: Snapshot,
      event: EventObject,
    ): { readonly after: Snapshot; readonly edges: readonly Edge[] } => {
      taken = [];
      const after = machine.transition(before, event as never, scope as never) as Snapshot;
      return { after, edges: taken };
    },
  };
};
