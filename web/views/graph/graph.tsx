import { useComputed, useSignal } from '@preact/signals';
import { activities, tasks } from '../../data/tasks.ts';
import { numbered } from '../../model/format.ts';
import { type Edge, graphOf, type Node, type Place } from '../../model/graph.ts';
import { lookOf, whyOf } from '../../model/state.ts';
import { ArrowHead } from '../../parts/arrow-head.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Empty, Problem } from '../../parts/notice.tsx';
import { RunAll } from '../../parts/run-all.tsx';
import { TaskLine } from '../../parts/task-link.tsx';
import { pathOf, taskPath } from '../../shell/router.ts';

const width = 268;
const height = 50;
const betweenLayers = 48;
const betweenRows = 16;

const placeOf = ({ layer, row }: Place) => ({
  x: layer * (width + betweenLayers),
  y: row * (height + betweenRows),
});

const NodeCard = ({ node }: { node: Node }) => {
  const { task, isCritical } = node;
  const { icon, tone } = lookOf(task);
  const { x, y } = placeOf(node);
  return (
    <a
      class={`node ${isCritical ? 'critical' : ''}`}
      href={taskPath(task.task_id)}
      style={{ left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px` }}
    >
      <span class="node-head">
        <Icon name={icon} tone={tone} />
        <span class="cut" title={task.title}>
          {task.title}
        </span>
        <span class="id">{task.task_id}</span>
      </span>
      <span class="node-why cut">
        {whyOf(task, activities.value.get(task.task_id), tasks.value)}
      </span>
    </a>
  );
};

const bend = betweenLayers / 2;

/** From the right side of the first, through the middle of free places, to the left of the last. */
const pathOfEdge = (first: Node, last: Node, { by }: Edge): string => {
  const from = placeOf(first);
  const middle = height / 2;
  let [x, y] = [from.x + width, from.y + middle];
  const parts = [`M${x},${y}`];
  const curveTo = (toX: number, toY: number): void => {
    parts.push(`C${x + bend},${y} ${toX - bend},${toY} ${toX},${toY}`);
    [x, y] = [toX, toY];
  };
  for (const place of by) {
    const free = placeOf(place);
    curveTo(free.x, free.y + middle);
    x += width;
    parts.push(`H${x}`);
  }
  const to = placeOf(last);
  curveTo(to.x - 4, to.y + middle);
  return parts.join('');
};

const EdgeLine = ({ edge, nodes }: { edge: Edge; nodes: ReadonlyMap<string, Node> }) => {
  const [first, last] = [nodes.get(edge.from), nodes.get(edge.to)];
  if (first === undefined || last === undefined) return null;
  return (
    <path
      class={`edge ${edge.isCritical ? 'critical' : ''}`}
      d={pathOfEdge(first, last, edge)}
      marker-end="url(#arrow)"
    />
  );
};

const CriticalPath = ({ ids }: { ids: readonly string[] }) => {
  const [first] = ids;
  if (first === undefined) return null;
  return (
    <div class="critical-path">
      <strong>Critical path: {numbered(ids.length, 'open task')}</strong>
      <span class="quiet">it waits for</span>
      <TaskLine id={first} />
    </div>
  );
};

/** What waits for what, first things left. */
export const Graph = () => {
  const graph = useComputed(() => graphOf(tasks.value));
  const message = useSignal<string | null>(null);
  const { nodes, edges, critical, hidden, hiddenEdges } = graph.value;
  if (nodes.length === 0)
    return (
      <Empty title="No task waits for another.">
        <p>
          Give a task a dependency when you create or edit it, or in a terminal with{' '}
          <code>agent dep add</code>.
        </p>
        <a class="button" href={pathOf('board')}>
          Board
        </a>
      </Empty>
    );
  // The critical ones are drawn over the others.
  const inOrder = [...edges].sort((one, other) => +one.isCritical - +other.isCritical);
  const byId = new Map(nodes.map((node) => [node.task.task_id, node]));
  const right = Math.max(...nodes.map(({ layer }) => layer)) * (width + betweenLayers) + width;
  const rows = [...nodes, ...edges.flatMap(({ by }) => by)].map(({ row }) => row + 1);
  const bottom = Math.max(...rows) * (height + betweenRows);
  return (
    <section class="page page-graph">
      <header class="view-head">
        <h1>Graph</h1>
        <span class="quiet">
          {numbered(nodes.length, 'task')}
          {hidden > 0 ? `, ${hidden.toLocaleString('en')} more are not drawn` : ''}
          {hiddenEdges > 0
            ? `; ${numbered(hiddenEdges, 'dependency is', 'dependencies are')} not drawn`
            : ''}
        </span>
        <span class="view-actions">
          <RunAll message={message} />
        </span>
      </header>
      <Problem message={message} />
      <CriticalPath ids={critical} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls by the keyboard */}
      <section class="graph" tabIndex={0} aria-label="Dependencies">
        <div class="graph-inner" style={{ width: `${right}px`, height: `${bottom}px` }}>
          <svg width={right} height={bottom} aria-hidden="true">
            <ArrowHead id="arrow" />
            {inOrder.map((edge) => (
              <EdgeLine key={`${edge.from} ${edge.to}`} edge={edge} nodes={byId} />
            ))}
          </svg>
          {nodes.map((node) => (
            <NodeCard key={node.task.task_id} node={node} />
          ))}
        </div>
      </section>
    </section>
  );
};
