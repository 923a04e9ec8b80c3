import { describeStore } from '../../contracts/store.ts';
import { createFarStore } from '../../simulation/far-store.ts';

describeStore('far', (near) => {
  const after = (_: number, run: () => void): void => queueMicrotask(run);
  return createFarStore(near, { fate: () => 'answered', delay: () => 0, after, lateMs: 0 });
});
