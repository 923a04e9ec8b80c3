import type { System } from '../../src/actors/system.ts';
import type { World } from './world.ts';

const lookMs = 1_000;
/** A slot may be on its way to a task, or back, for this many looks. */
const looksAtMost = 15;
/** A task may be looked at late, or while the tracker is away. */
const lateMs = 60_000;

/** Says when a task that no longer works keeps its slot, and when a parked one is not woken. */
export const watchParked = (world: World, systemNow: () => System | null): void => {
  const { clock, invariants, weather, far } = world;
  let kept = 0;
  let system: System | null = null;
  let since = 0;

  const look = (): void => {
    clock.after('world', lookMs, look);
    if (systemNow() !== system) {
      system = systemNow();
      since = clock.now();
      kept = 0;
    }
    if (system === null || far || weather.trackerAway || weather.diskFull) {
      kept = 0;
      since = clock.now();
      return;
    }
    const { running } = system.slotUse();
    kept = running > invariants.working() ? kept + 1 : 0;
    if (kept > looksAtMost)
      invariants.violated(
        `I2 ${running} slots are held, ${invariants.working()} tasks are at work`,
      );
    for (const id of invariants.taskIds()) {
      const row = invariants.rowOf(id);
      const until = row?.context.parked?.until ?? Number.POSITIVE_INFINITY;
      const isParked = JSON.stringify(row?.value) === '{"queued":"parked"}';
      if (isParked && clock.now() > Math.max(until, since) + lateMs)
        invariants.violated(`I7 ${id} is parked after the end of its limit`);
    }
  };
  clock.after('world', lookMs, look);
};
