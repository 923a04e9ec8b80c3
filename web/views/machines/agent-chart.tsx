import type { AgentChartProps } from '../../data/later-parts.ts';
import { chartOf, sceneAt } from '../../model/chart.ts';
import { machinesPath } from '../../shell/router.ts';
import { ChartDrawing } from './chart-drawing.tsx';

/** The agent at work, live or at the moment that is shown. */
export const AgentChart = ({ id, shown: { all, moment } }: AgentChartProps) => {
  const scene = sceneAt(all, 'agent', moment?.seq ?? 0);
  return (
    <section>
      <h2>
        Agent <code>{scene.here}</code> <a href={machinesPath(id)}>Machines</a>
      </h2>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls by the keyboard */}
      <section class="chart-part" tabIndex={0} aria-label="Statechart">
        <ChartDrawing chart={chartOf('agent')} scene={scene} name="agent" isPart />
      </section>
    </section>
  );
};
