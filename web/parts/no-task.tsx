import { pathOf } from '../shell/router.ts';
import { Empty } from './notice.tsx';

/** For an address with the id of a task that is not there. */
export const NoTask = ({ id }: { id: string }) => (
  <Empty title={`No task ${id} in this project.`}>
    <a class="button" href={pathOf('board')}>
      Board
    </a>
  </Empty>
);
