// Gives the states and lines of a chart their places, with ELK.
import Elk from 'elkjs';

const height = 28;
const widthOf = ({ label }) => Math.ceil(label.length * 6.7) + 26;
const parentOf = (id) => id.split('.').slice(0, -1).join('.');

const options = {
  'elk.algorithm': 'layered',
  'elk.direction': 'DOWN',
  'elk.edgeRouting': 'ORTHOGONAL',
  'elk.hierarchyHandling': 'INCLUDE_CHILDREN',
  'elk.spacing.nodeNode': '24',
  'elk.spacing.edgeEdge': '7',
  'elk.spacing.edgeNode': '12',
  'elk.layered.spacing.nodeNodeBetweenLayers': '20',
  'elk.layered.spacing.edgeNodeBetweenLayers': '9',
  'elk.layered.spacing.edgeEdgeBetweenLayers': '7',
  'elk.layered.nodePlacement.strategy': 'NETWORK_SIMPLEX',
  // At the right, the ticks of a state.
  'elk.padding': '[top=8,left=8,bottom=8,right=20]',
};

/** Above, the name of the group. */
const inGroup = '[top=44,left=22,bottom=22,right=34]';

const straight = {
  'elk.layered.priority.direction': '20',
  'elk.layered.priority.straightness': '20',
  'elk.layered.priority.shortness': '20',
};

/** For a group whose states no line joins: in rows. */
const inRows = {
  'elk.algorithm': 'rectpacking',
  'elk.hierarchyHandling': 'SEPARATE_CHILDREN',
  'elk.aspectRatio': '2.4',
  'elk.spacing.nodeNode': '30',
};

const treeOf = ({ groups, states, lines }, parent) => [
  ...groups
    .filter(({ id }) => parentOf(id) === parent)
    .map(({ id }) => ({
      id,
      layoutOptions: {
        'elk.padding': inGroup,
        ...(lines.some(({ from }) => from.startsWith(`${id}.`)) ? {} : inRows),
      },
      children: treeOf({ groups, states, lines }, id),
    })),
  ...states
    .filter(({ id }) => parentOf(id) === parent)
    .map((state) => ({ id: state.id, width: widthOf(state), height })),
];

/** Each node with its place in the whole drawing. */
const placesIn = (node, x = 0, y = 0) => [
  { ...node, x, y },
  ...(node.children ?? []).flatMap((child) => placesIn(child, x + child.x, y + child.y)),
];

const edgesIn = (node) => [...(node.edges ?? []), ...(node.children ?? []).flatMap(edgesIn)];

const round = (value) => Math.round(value * 2) / 2;

/** @returns the chart with `x`, `y`, `width`, `height` of each box and `points` of each line */
export const layOut = async (chart) => {
  const graph = await new Elk().layout({
    id: '',
    layoutOptions: options,
    children: treeOf(chart, ''),
    edges: chart.lines.map(({ from, to, isMain = false }, nth) => ({
      id: `line ${nth}`,
      sources: [from],
      targets: [to],
      layoutOptions: isMain ? straight : {},
    })),
  });
  const places = new Map(placesIn(graph).map((node) => [node.id, node]));
  const placed = (box) => {
    const { x, y, width, height } = places.get(box.id);
    return { ...box, x: round(x), y: round(y), width: round(width), height: round(height) };
  };
  const routes = new Map(edgesIn(graph).map((edge) => [edge.id, edge]));
  const pointsOf = (nth) => {
    const { sections, container } = routes.get(`line ${nth}`);
    const { x, y } = places.get(container ?? '');
    return sections.flatMap(({ startPoint, bendPoints = [], endPoint }) =>
      [startPoint, ...bendPoints, endPoint].map((point) => [
        round(x + point.x),
        round(y + point.y),
      ]),
    );
  };
  return {
    width: Math.ceil(graph.width),
    height: Math.ceil(graph.height),
    anywhere: chart.anywhere,
    groups: chart.groups.map(placed),
    states: chart.states.map(placed),
    lines: chart.lines.map((line, nth) => ({ ...line, points: pointsOf(nth) })),
  };
};
