import { describeStore, sqliteScene } from '../../contracts/store.ts';
import { createFarStore } from '../../simulation/far-store.ts';

const after = (_: number, run: () => void): void => queueMicrotask(run);

describeStore('far', () =>
  sqliteScene((near) =>
    createFarStore(near, { fate: () => 'answered', delay: () => 0, after, lateMs: 0 }),
  ),
);
