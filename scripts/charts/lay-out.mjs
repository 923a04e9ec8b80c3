// Gives the states and lines of a chart their places, with ELK.
import Elk from 'elkjs';

const height = 28;
const widthOf = ({ label }) => Math.ceil(label.length * 6.7) + 20;
const parentOf = (id) => id.split('.').slice(0, -1).join('.');

const options = {
  'elk.algorithm': 'layered',
  'elk.edgeRouting': 'ORTHOGONAL',
  // Lines to one state share their last part.
  'elk.layered.mergeEdges': 'true',
  'elk.spacing.nodeNode': '20',
  'elk.spacing.edgeEdge': '7',
  'elk.spacing.edgeNode': '12',
  'elk.layered.spacing.nodeNodeBetweenLayers': '20',
  'elk.layered.spacing.edgeNodeBetweenLayers': '9',
  'elk.layered.spacing.edgeEdgeBetweenLayers': '7',
  'elk.layered.thoroughness': '50',
};

const downwards = {
  ...options,
  'elk.direction': 'DOWN',
  // The states of the usual way come first.
  'elk.layered.cycleBreaking.strategy': 'MODEL_ORDER',
  'elk.layered.nodePlacement.strategy': 'NETWORK_SIMPLEX',
  'elk.aspectRatio': '1',
};

/** Lines that leave the group begin below a state, as the others do. */
const inGroups = {
  ...downwards,
  'elk.layered.cycleBreaking.strategy': 'GREEDY_MODEL_ORDER',
};

/** For a group with many states: those that no line joins fill its rows. */
const narrow = {
  ...inGroups,
  'elk.layered.layering.strategy': 'MIN_WIDTH',
  'elk.separateConnectedComponents': 'false',
};

/** The groups of a chart stand beside each other; the states in a group, one below the other. */
const sideways = {
  ...options,
  'elk.direction': 'RIGHT',
  // At the same height.
  'elk.layered.nodePlacement.strategy': 'SIMPLE',
  'elk.layered.spacing.nodeNodeBetweenLayers': '24',
};

/** At the right, the ticks of a state. */
const around = '[top=8,left=8,bottom=8,right=20]';
/** Above, the name of the group. */
const inGroup = '[top=36,left=14,bottom=14,right=24]';

const straight = {
  'elk.layered.priority.direction': '20',
  'elk.layered.priority.straightness': '20',
  'elk.layered.priority.shortness': '20',
};

/** For a group whose states no line joins: in rows. */
const inRows = {
  'elk.algorithm': 'rectpacking',
  'elk.aspectRatio': '1.3',
  'elk.spacing.nodeNode': '20',
};

/** The groups that a state is in, the innermost first. */
const groupsOf = (id) => {
  const parent = parentOf(id);
  return parent === '' ? [] : [parent, ...groupsOf(parent)];
};

/**
 * A line between two groups leaves and enters each on the side where the other end is.
 * @returns where it goes along: states, and ports of groups
 */
const stopsOf = ({ from, to }, nth, columns) => {
  const [out, into] = [groupsOf(from), groupsOf(to)];
  const isRight = columns.indexOf(from.split('.')[0]) < columns.indexOf(to.split('.')[0]);
  const port = (side) => (group) => ({ id: `${group} line ${nth}`, group, side });
  return [
    { id: from },
    ...out.filter((group) => !into.includes(group)).map(port(isRight ? 'EAST' : 'WEST')),
    ...into
      .filter((group) => !out.includes(group))
      .map(port(isRight ? 'WEST' : 'EAST'))
      .reverse(),
    { id: to },
  ];
};

const edgesOf = ({ isMain = false }, nth, stops) =>
  stops.slice(1).map((stop, piece) => ({
    id: `line ${nth} ${piece}`,
    sources: [stops[piece].id],
    targets: [stop.id],
    layoutOptions: isMain ? straight : {},
  }));

const rankOf = ({ main }, { id }) => (main.includes(id) ? main.indexOf(id) : main.length);

const optionsOf = ({ groups, lines }, id) => {
  if (!lines.some(({ from }) => from.startsWith(`${id}.`))) return inRows;
  return groups.some((group) => parentOf(group.id) === id) ? inGroups : narrow;
};

const treeOf = (chart, ports, parent) => [
  ...chart.groups
    .filter(({ id }) => parentOf(id) === parent)
    .map(({ id }) => ({
      id,
      layoutOptions: {
        ...optionsOf(chart, id),
        'elk.padding': inGroup,
        'elk.portConstraints': 'FIXED_SIDE',
      },
      ports: ports
        .filter(({ group }) => group === id)
        .map((port) => ({ id: port.id, layoutOptions: { 'elk.port.side': port.side } })),
      children: treeOf(chart, ports, id),
    })),
  ...chart.states
    .filter(({ id }) => parentOf(id) === parent)
    .sort((one, other) => rankOf(chart, one) - rankOf(chart, other))
    .map((state) => ({ id: state.id, width: widthOf(state), height })),
];

/** Each node with its place in the whole drawing. */
const placesIn = (node, x = 0, y = 0) => [
  { ...node, x, y },
  ...(node.children ?? []).flatMap((child) => placesIn(child, x + child.x, y + child.y)),
];

const edgesIn = (node) => [...(node.edges ?? []), ...(node.children ?? []).flatMap(edgesIn)];

const round = (value) => Math.round(value * 2) / 2;

/** Without points that are on a straight line between their neighbours. */
const corners = (points) =>
  points.filter(([x, y], nth) => {
    const [before, next] = [points[nth - 1], points[nth + 1]];
    if (before === undefined || next === undefined) return true;
    return !(before[0] === x && x === next[0]) && !(before[1] === y && y === next[1]);
  });

/** @returns the chart with `x`, `y`, `width`, `height` of each box and `points` of each line */
export const layOut = async (chart) => {
  const columns = [...new Set([...chart.main, ...chart.states.map(({ id }) => id)])].map(
    (id) => id.split('.')[0],
  );
  const stops = chart.lines.map((line, nth) => stopsOf(line, nth, columns));
  const ports = stops.flat().filter(({ group }) => group !== undefined);
  const isInColumns = chart.groups.filter(({ id }) => parentOf(id) === '').length > 1;
  const graph = await new Elk().layout({
    id: '',
    layoutOptions: { ...(isInColumns ? sideways : downwards), 'elk.padding': around },
    children: treeOf(chart, ports, ''),
    edges: chart.lines.flatMap((line, nth) => edgesOf(line, nth, stops[nth])),
  });
  const places = new Map(placesIn(graph).map((node) => [node.id, node]));
  const placed = (box) => {
    const { x, y, width, height } = places.get(box.id);
    return { ...box, x: round(x), y: round(y), width: round(width), height: round(height) };
  };
  const routes = new Map(edgesIn(graph).map((edge) => [edge.id, edge]));
  const pointsOf = (nth) =>
    stops[nth].slice(1).flatMap((_, piece) => {
      const { sections, container } = routes.get(`line ${nth} ${piece}`);
      const { x, y } = places.get(container ?? '');
      return sections.flatMap(({ startPoint, bendPoints = [], endPoint }) =>
        [startPoint, ...bendPoints, endPoint].map((point) => [
          round(x + point.x),
          round(y + point.y),
        ]),
      );
    });
  return {
    width: Math.ceil(graph.width),
    height: Math.ceil(graph.height),
    anywhere: chart.anywhere,
    groups: chart.groups.map(placed),
    states: chart.states.map(placed),
    lines: chart.lines.map((line, nth) => ({ ...line, points: corners(pointsOf(nth)) })),
  };
};
