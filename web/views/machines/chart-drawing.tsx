import { useEffect, useRef } from 'preact/hooks';
import type { Box, Chart, Line, Scene } from '../../model/chart.ts';
import { ArrowHead } from '../../parts/arrow-head.tsx';

const radius = 6;
/** Smaller, its words cannot be read; then it scrolls. */
const leastScale = 0.76;

/** The last part of its path. */
const labelOf = ({ id }: Box): string => id.slice(id.lastIndexOf('.') + 1);

const towards = ([x = 0, y = 0]: readonly number[], [toX = 0, toY = 0]: readonly number[]) => {
  const length = Math.hypot(toX - x, toY - y);
  const part = length === 0 ? 0 : Math.min(radius, length / 2) / length;
  return [x + (toX - x) * part, y + (toY - y) * part];
};

const pathAlong = (points: readonly (readonly number[])[]): string =>
  points
    .map((point, index) => {
      const [before, next] = [points[index - 1], points[index + 1]];
      if (before === undefined) return `M${point}`;
      return next === undefined
        ? `L${point}`
        : `L${towards(point, before)}Q${point} ${towards(point, next)}`;
    })
    .join('');

const isHere = (id: string, { here, also }: Scene): boolean =>
  id === here || also?.has(id) === true;

const lineKind = ({ from, to }: Line, scene: Scene): string => {
  const { taken, last } = scene;
  if (last.has(`${from} ${to}`)) return 'last';
  if (taken.has(`${from} ${to}`)) return 'taken';
  return isHere(from, scene) ? 'next' : '';
};

const stateKind = ({ id }: Box, scene: Scene, next: ReadonlySet<string>): string => {
  const { visited } = scene;
  if (isHere(id, scene)) return 'here';
  if (next.has(id)) return visited.has(id) ? 'was next' : 'next';
  return visited.has(id) ? 'was' : '';
};

const ticksOf = ({ exits }: Box): readonly string[] =>
  ['cancel', 'deadline', 'error', 'tracker', 'away'].filter((kind) =>
    exits.some((exit) => exit.kind === kind),
  );

const wordsOf = ({ on }: Line): string =>
  on.map(({ event, guard }) => (guard === null ? event : `${event} [${guard}]`)).join('\n');

const exitWords = ({ exits }: Box): string =>
  exits
    .map(({ event, guard, to }) => `${event}${guard === null ? '' : ` [${guard}]`} → ${to}`)
    .join('\n');

const StateBox = ({ box, kind }: { box: Box; kind: string }) => {
  const ticks = ticksOf(box);
  const top = box.y + box.height / 2 - (ticks.length - 1) * 3;
  return (
    <g class={`state ${kind}`} aria-current={kind === 'here' ? 'step' : undefined}>
      <title>{exitWords(box) === '' ? box.id : `${box.id}\n${exitWords(box)}`}</title>
      <rect x={box.x} y={box.y} width={box.width} height={box.height} rx="6" />
      <text x={box.x + box.width / 2} y={box.y + 18}>
        {labelOf(box)}
      </text>
      {ticks.map((tick, index) => (
        <path
          key={tick}
          class={`tick tick-${tick}`}
          d={`M${box.x + box.width + 3},${top + index * 6}h8`}
        />
      ))}
    </g>
  );
};

/** Active states are lit. `isPart`: only what is around it scrolls, not the page. */
export const ChartDrawing = ({
  chart,
  scene,
  name,
  isPart = false,
}: {
  chart: Chart;
  scene: Scene;
  name: string;
  isPart?: boolean;
}) => {
  const drawing = useRef<SVGSVGElement>(null);
  useEffect(() => {
    const part = drawing.current?.parentElement;
    const here = chart.states.find(({ id }) => id === scene.here);
    if (isPart && here !== undefined)
      part?.scrollTo(
        here.x + (here.width - part.clientWidth) / 2,
        here.y + (here.height - part.clientHeight) / 2,
      );
    if (!isPart)
      part?.querySelector('.state.here')?.scrollIntoView({ block: 'center', inline: 'center' });
  }, [chart, scene.here, name, isPart]);
  const next = new Set(chart.lines.filter(({ from }) => isHere(from, scene)).map(({ to }) => to));
  const active = [...(scene.here === null ? [] : [scene.here]), ...(scene.also ?? [])];
  return (
    <svg
      ref={drawing}
      class="chart"
      viewBox={`0 0 ${chart.width} ${chart.height}`}
      width={chart.width}
      height={chart.height}
      style={{ minWidth: leastScale * chart.width }}
      role="img"
      aria-label={`The ${name} machine, ${active.length === 0 ? 'in no state yet' : `in ${active.join(', ')}`}`}
    >
      <ArrowHead id="head" />
      {chart.groups.map((group) => (
        <g
          key={group.id}
          class={`group ${active.some((id) => id.startsWith(`${group.id}.`)) ? 'here' : ''}`}
        >
          <rect x={group.x} y={group.y} width={group.width} height={group.height} rx="8" />
          <text x={group.x + 12} y={group.y + 20}>
            {labelOf(group)}
          </text>
        </g>
      ))}
      {chart.lines.map((line) => (
        <path
          key={`${line.from} ${line.to}`}
          class={`line ${lineKind(line, scene)}`}
          d={pathAlong(line.points)}
          marker-end="url(#head)"
        >
          <title>{`${line.from} → ${line.to}\n${wordsOf(line)}`}</title>
        </path>
      ))}
      {chart.states.map((box) => (
        <StateBox key={box.id} box={box} kind={stateKind(box, scene, next)} />
      ))}
    </svg>
  );
};
