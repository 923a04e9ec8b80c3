import {
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type EventObject,
  type StateNode,
  transition,
} from 'xstate';

/** One edge: the state, the event, and the target. */
export interface Row {
  readonly says: string;
  readonly from: string;
  readonly event: EventObject;
  readonly given?: object;
  readonly to: string;
  /** The target of the edge, when the chart moves on from there by itself. */
  readonly target?: string;
  readonly expected?: object;
}

type Node = StateNode<never, never>;

export const at = 1_000_000;

/** The end of an invoked actor. */
export const done = (id: string, output: unknown = undefined): EventObject =>
  ({ type: `xstate.done.actor.${id}`, output, actorId: id, at }) as EventObject;
export const broken = (id: string, message = 'it broke'): EventObject =>
  ({
    type: `xstate.error.actor.${id}`,
    error: { name: 'Error', message },
    actorId: id,
    at,
  }) as EventObject;

const valueAt = (path: string): string | object => {
  const [first = '', ...rest] = path.split('.');
  return rest.length === 0 ? first : { [first]: valueAt(rest.join('.')) };
};

/** The path of the one active leaf. */
export const pathOf = ({ value }: { readonly value: unknown }): string =>
  typeof value === 'string'
    ? value
    : Object.entries(value as object)
        .map(([key, inner]) => `${key}.${pathOf({ value: inner })}`)
        .join();

/** One pure step from a state with a context. */
export const step = (
  machine: AnyStateMachine,
  from: string,
  context: object,
  event: EventObject,
): AnyMachineSnapshot => {
  const before = machine.resolveState({ value: valueAt(from), context } as never);
  return transition(machine, before as never, event as never)[0] as AnyMachineSnapshot;
};

export const nodesOf = (node: AnyStateMachine['root'] | Node): readonly Node[] => [
  node as Node,
  ...Object.values(node.states).flatMap((child) => nodesOf(child as Node)),
];

const name = (node: Node): string => node.path.join('.') || '(root)';

/** Every edge of a chart with an event, as `from | event | target`. */
export const edgesOf = (machine: AnyStateMachine): readonly string[] =>
  nodesOf(machine.root).flatMap((node) =>
    [...node.transitions].flatMap(([type, list]) =>
      list.flatMap((each) =>
        ((each.target ?? [node]) as readonly Node[]).map(
          (target) => `${name(node)} | ${type} | ${name(target)}`,
        ),
      ),
    ),
  );

/**
 * The edge that a row takes: of the state itself or of the nearest parent with one for the event.
 */
export const edgeOf = (machine: AnyStateMachine, { from, event, to, target = to }: Row): string => {
  const edges = new Set(edgesOf(machine));
  for (
    let path = from;
    ;
    path = path.includes('.') ? path.slice(0, path.lastIndexOf('.')) : '(root)'
  ) {
    for (
      let end = target;
      end !== '';
      end = end.includes('.') ? end.slice(0, end.lastIndexOf('.')) : ''
    ) {
      const edge = `${path} | ${event.type} | ${end}`;
      if (edges.has(edge)) return edge;
    }
    const own = `${path} | ${event.type} | ${path}`;
    if (edges.has(own)) return own;
    if (path === '(root)') throw new Error(`no edge for ${from} | ${event.type} | ${target}`);
  }
};
