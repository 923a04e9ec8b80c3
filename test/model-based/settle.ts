import { setTimeout as delay } from 'node:timers/promises';
import type { TaskView } from '../../src/actors/journal/task-view.ts';
import type { Tracker } from '../../src/actors/tracker/port.ts';
import type { startServer } from '../support/running.ts';
import { type Expected, type ExpectedTask, end, isLive, rest, statusOf } from './expected.ts';
import type { HeldModel } from './held-model.ts';

/** The service under test, with what the test holds of the world around it. */
export interface Real {
  readonly server: Awaited<ReturnType<typeof startServer>>;
  readonly held: HeldModel;
  /** Another program that works on the same tasks. */
  readonly amy: Tracker;
  /** What takes a task from this service, so that somebody else can have it. */
  readonly thief: Tracker;
}

const settleMs = 8_000;

/** A task that comes back from its pause does so by itself. */
const comeBack = (task: ExpectedTask, { attempt, phase, error }: TaskView): void => {
  if (task.stand !== 'pausing') return;
  // One that is still started in its last attempt has not begun its pause.
  if (attempt > task.attempt || phase === 'waiting_for_slot') task.stand = 'asked';
  else if (phase === 'waiting_for_run' && error?.code === 'queue_full') rest(task);
};

/** It has lent its slot, or waits for it after the answer. */
const isReturning = ({ status, phase }: TaskView): boolean =>
  status === 'started' && phase === 'waiting_for_slot';
const isAtWork = (view: TaskView): boolean =>
  view.status === 'started' && view.phase !== 'awaiting_input' && !isReturning(view);

/** One that has no turn left fails as soon as it has its slot again. */
const runOut = (task: ExpectedTask, { status }: TaskView): void => {
  if (task.stand !== 'asked' || task.asking || task.turns < task.maxTurns || status !== 'failed')
    return;
  task.tracked = { word: 'failed', heldByAmy: false };
  end(task, 'failed');
};

const begins = (task: ExpectedTask, { status }: TaskView): boolean =>
  task.stand === 'asked' && !task.hasSlot && status === 'started';

/** How a task differs from what it must be, or null. */
const differs = (task: ExpectedTask, view: TaskView, held: HeldModel): string | null => {
  const begun = begins(task, view);
  const status = begun ? 'started' : statusOf(task);
  const attempt = task.attempt + (begun ? 1 : 0);
  const thinks = view.phase === 'thinking' && held.isAtWork(task.id, attempt);
  const wrong =
    view.status !== status ||
    view.attempt !== attempt ||
    // Nobody of ours works on it any more: only the tracker says that it is started.
    (!isLive(task) && status === 'started' && view.phase !== 'started') ||
    (task.stand === 'pausing' && view.phase !== 'backing_off') ||
    (task.stand === 'asked' && status === 'queued' && view.phase !== 'waiting_for_slot') ||
    (task.stand === 'asked' &&
      status === 'started' &&
      !(task.asking ? view.phase === 'awaiting_input' : thinks || isReturning(view)));
  return wrong
    ? `${task.id} is ${view.status} (${view.phase}, attempt ${view.attempt}), not ${status} (${task.stand}, attempt ${attempt})`
    : null;
};

/** Whether one that still waits had the right to the slot that another got. */
const isPassedOver = (waiting: ExpectedTask, granted: ExpectedTask): boolean =>
  waiting.priority < granted.priority ||
  (waiting.priority === granted.priority && waiting.order < granted.order);

/** One that is ended while it waits for a person has its slot lent until it is gone. */
const working: ReadonlySet<string> = new Set(['preparing', 'thinking', 'acting', 'verifying']);

/** What is true of the service at every instant, whatever it is about to do. */
const requireSound = (
  model: Expected,
  views: ReadonlyMap<string, TaskView>,
  { held }: Real,
): void => {
  if (held.faults.length > 0) throw new Error(held.faults.join('; '));
  const running = model.tasks.filter(({ id, tracked }) => {
    const { status, phase } = views.get(id) as TaskView;
    return !tracked.heldByAmy && status === 'started' && working.has(phase);
  });
  if (running.length > model.cap)
    throw new Error(`${running.length} tasks run, at most ${model.cap} may`);
  const fallen = model.tasks.filter(({ id, attempt }) => (views.get(id)?.attempt ?? 0) < attempt);
  if (fallen.length > 0)
    throw new Error(`the attempt of ${fallen.map(({ id }) => id).join()} fell`);
};

/** Who got a slot, in the order in which they had a right to it. */
const takeSlots = (
  model: Expected,
  views: ReadonlyMap<string, TaskView>,
  pausing: ReadonlySet<string>,
): void => {
  const granted = model.tasks.filter((task) => begins(task, views.get(task.id) as TaskView));
  for (const task of granted) {
    task.hasSlot = true;
    task.asking = false;
    task.turns = 0;
    task.attempt += 1;
  }
  const waiting = model.tasks.filter(({ stand, hasSlot }) => stand === 'asked' && !hasSlot);
  const passed = waiting.find(
    (task) =>
      !pausing.has(task.id) &&
      granted.some((other) => !pausing.has(other.id) && isPassedOver(task, other)),
  );
  if (passed !== undefined)
    throw new Error(`${passed.id} was passed over by ${granted.map(({ id }) => id).join()}`);
};

/** Waits until the service is as it must be; what it must always be is asked at every look. */
export const settle = async (model: Expected, real: Real): Promise<void> => {
  const pausing = new Set(
    model.tasks.filter(({ stand }) => stand === 'pausing').map(({ id }) => id),
  );
  const began = Date.now();
  for (let pauseMs = 2; ; pauseMs = Math.min(pauseMs * 1.5, 60)) {
    const { tasks } = (await real.server.call('list', {})).result as { tasks: readonly TaskView[] };
    const views = new Map(tasks.map((view) => [view.task_id, view]));
    requireSound(model, views, real);
    for (const task of model.tasks) {
      comeBack(task, views.get(task.id) as TaskView);
      runOut(task, views.get(task.id) as TaskView);
    }
    const asked = model.tasks.filter(({ stand }) => stand === 'asked');
    const running = asked.filter(({ id }) => isAtWork(views.get(id) as TaskView)).length;
    const wanting = asked.filter(({ asking }) => !asking).length;
    const wrong = [
      ...model.tasks.flatMap(
        (task) => differs(task, views.get(task.id) as TaskView, real.held) ?? [],
      ),
      ...(running === Math.min(model.cap, wanting) ? [] : [`${running} of ${wanting} run`]),
    ];
    if (wrong.length === 0) {
      for (const task of model.tasks) task.returning = isReturning(views.get(task.id) as TaskView);
      return takeSlots(model, views, pausing);
    }
    await delay(pauseMs);
    if (Date.now() - began > settleMs)
      throw new Error(`it does not come about: ${wrong.join('; ')}`);
  }
};
