// What is loaded when it is first needed, in one file: several would part the first one, too.
export { Images } from '../parts/images.tsx';
export { Graph } from '../views/graph/graph.tsx';
export { AgentChart } from '../views/machines/agent-chart.tsx';
export { Machines } from '../views/machines/machines.tsx';
export { System } from '../views/system/system.tsx';
