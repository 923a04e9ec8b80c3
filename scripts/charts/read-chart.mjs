// Reads from a machine what a drawing of it needs: groups, states, lines, exits.

const nameOf = (object) => (typeof object === 'string' ? object : object.type);

/** `always`, `DEADLINE`, `work done`, `work error` */
export const eventName = (type) => {
  if (type === '') return 'always';
  const [, kind, id] = /^xstate\.(done|error)\.actor\.(.+)$/.exec(type) ?? [];
  if (kind === undefined) return type;
  return `${id === '*' ? 'any child' : id} ${kind === 'done' ? 'done' : 'error'}`;
};

/** The name of a transition's guard with what it asks for, or null. */
export const guardName = ({ guard }) => {
  if (guard === undefined) return null;
  if (typeof guard.params !== 'function') return nameOf(guard);
  try {
    const { is } = guard.params({ event: {}, context: {} }) ?? {};
    return is === undefined ? nameOf(guard) : `${nameOf(guard)} ${is}`;
  } catch {
    return nameOf(guard);
  }
};

export const statesOf = (node) => [node, ...Object.values(node.states).flatMap(statesOf)];

/** Every transition of a state, in the order in which XState tries them. */
export const transitionsOf = (node) => [
  ...[...node.transitions.entries()].flatMap(([type, list]) =>
    list.map((transition) => ({ type, transition })),
  ),
  ...(node.always ?? []).map((transition) => ({ type: '', transition })),
];

/** Nearly every state has such an exit: a tick on its box stands for it, not a line. */
const exitKinds = { cancel: 'cancel', DEADLINE: 'deadline', 'tracker.observed': 'tracker' };

const exitKindOf = (source, target, event, chart) => {
  if (event.endsWith(' error')) return 'error';
  if (exitKinds[event] !== undefined) return exitKinds[event];
  if (target === source) return 'stays';
  return chart.isExit({ from: source.path.join('.'), to: target.path.join('.') }) ? 'away' : null;
};

const hasStates = ({ states }) => Object.keys(states).length > 0;

/** Of regions side by side, the last one works. */
const insideOf = (target) => {
  if (target.type === 'parallel') return insideOf(Object.values(target.states).at(-1));
  return target.type === 'compound' ? insideOf(target.initial.target[0]) : target;
};

/** Marks the lines along a list of states. @throws when two that follow have no line */
const markMain = (lines, main) => {
  for (const [nth, from] of main.slice(0, -1).entries()) {
    const line = lines.get(`${from} ${main[nth + 1]}`);
    if (line === undefined) throw new Error(`the chart has no line ${from} → ${main[nth + 1]}`);
    line.isMain = true;
  }
};

/**
 * @param chart `isExit({ from, to })` says which other transitions are ticks too; `main` lists
 * the states of the usual way
 * @returns `groups` (states with states), `states` (the others, each with its exits), `lines` (one
 * for each pair of states, with every event that takes it) and `anywhere` (the transitions that
 * every state has)
 */
export const readChart = (machine, chart) => {
  const all = statesOf(machine.root).slice(1);
  const id = (node) => node.path.join('.');
  const lines = new Map();
  const exits = new Map(all.map((node) => [id(node), []]));
  const put = (source, target, event, guard) => {
    const kind = exitKindOf(source, target, event, chart);
    if (kind !== null) {
      exits.get(id(source)).push({ kind, event, guard, to: id(target) });
      return;
    }
    const [from, to] = [id(insideOf(source)), id(insideOf(target))];
    const line = lines.get(`${from} ${to}`) ?? { from, to, on: [] };
    line.on.push({ event, guard });
    lines.set(`${from} ${to}`, line);
  };
  for (const source of all)
    for (const { type, transition } of transitionsOf(source))
      for (const target of transition.target ?? [source])
        put(source, target, eventName(type), guardName(transition));
  markMain(lines, chart.main);
  const anywhere = transitionsOf(machine.root).map(({ type, transition }) => ({
    event: eventName(type),
    guard: guardName(transition),
    to: (transition.target ?? []).map(id),
  }));
  return {
    anywhere,
    groups: all
      .filter(hasStates)
      .map((node) => ({ id: id(node), label: node.key, exits: exits.get(id(node)) })),
    states: all
      .filter((node) => !hasStates(node))
      .map((node) => ({ id: id(node), label: node.key, exits: exits.get(id(node)) })),
    lines: [...lines.values()],
    main: chart.main,
  };
};
