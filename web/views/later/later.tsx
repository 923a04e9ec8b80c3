import { Empty } from '../../parts/notice.tsx';
import { pathOf } from '../../shell/router.ts';

export const Graph = () => (
  <Empty title="The graph is not part of this version">
    <p>
      The <a href={pathOf('board')}>board</a> says what each task waits for. In a terminal,{' '}
      <code>agent dep tree</code> and the id of a task print what it depends on.
    </p>
  </Empty>
);

export const Machines = () => (
  <Empty title="The charts are not part of this version">
    <p>
      In a terminal, <code>agent explain</code> and the id of a task print its state, the guards and
      the events that are allowed now.
    </p>
  </Empty>
);
