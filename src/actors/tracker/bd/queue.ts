import type { Urgency } from '../port.ts';

/** Work of one project that must not overlap, interactive before background, each kind in the order of its arrival. */
export interface Queue {
  /** @throws QueueFullError when `limit` others wait */
  run<Result>(urgency: Urgency, work: () => Promise<Result>): Promise<Result>;
}

export class QueueFullError extends Error {
  override readonly name = 'QueueFullError';
}

/** Two bd at once fail for each other (facts/beads 1.6); so many interactive ones pass before a background one gets its turn. */
const burst = 4;

export const createQueue = (limit: number): Queue => {
  const waiting: Record<Urgency, (() => Promise<unknown>)[]> = { interactive: [], background: [] };
  let running = false;
  let passed = 0;

  const next = (): (() => Promise<unknown>) | undefined => {
    const { interactive, background } = waiting;
    const turn = background.length > 0 && (interactive.length === 0 || passed >= burst);
    passed = turn ? 0 : passed + 1;
    return turn ? background.shift() : interactive.shift();
  };

  const drain = async (): Promise<void> => {
    if (running) return;
    running = true;
    for (let work = next(); work !== undefined; work = next()) await work();
    running = false;
  };

  return {
    run: (urgency, work) =>
      new Promise((resolve, reject) => {
        if (waiting.interactive.length + waiting.background.length >= limit) {
          reject(new QueueFullError(`${limit} calls wait for the tracker already`));
          return;
        }
        waiting[urgency].push(() => work().then(resolve, reject));
        void drain();
      }),
  };
};
