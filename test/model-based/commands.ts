import fc from 'fast-check';
import { expect } from 'vitest';
import {
  allowedIn,
  closesCycle,
  type Expected,
  type ExpectedTask,
  end,
  followTracker,
  isLive,
  isNeeded,
  newTask,
  rest,
  statusOf,
  unmetOf,
} from './expected.ts';
import type { End } from './held-model.ts';
import {
  cancel,
  close,
  execute,
  type Fit,
  type Prediction,
  reopen,
  respond,
  retry,
  review,
} from './requests.ts';
import { type Real, settle } from './settle.ts';

type Command = fc.AsyncCommand<Expected, Real>;
const tasksAtMost = 7;
const streakAtMost = 3;

/** How often each kind of command was carried out in the runs of a test. */
export const counts = new Map<string, number>();

const command = (
  kind: string,
  about: string,
  check: (model: Expected) => boolean,
  run: (model: Expected, real: Real) => Promise<void>,
): Command => ({
  check,
  run: async (model, real) => {
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
    await run(model, real);
    await settle(model, real);
  },
  toString: () => `${kind}(${about})`,
});

const pick = ({ tasks }: Pick<Expected, 'tasks'>, index: number): ExpectedTask =>
  tasks[index % tasks.length] as ExpectedTask;
/** One of those of which it is true, or of all when it is true of none. */
const pickWhere = (
  { tasks }: Expected,
  index: number,
  isSo: (task: ExpectedTask) => boolean,
): ExpectedTask => {
  const fitting = tasks.filter(isSo);
  return pick({ tasks: fitting.length === 0 ? tasks : fitting }, index);
};
const isAtWork = ({ stand, hasSlot, asking, returning }: ExpectedTask): boolean =>
  stand === 'asked' && hasSlot && !asking && !returning;

/** Sends a request about a task, and compares the answer with what the model says. */
const request = (
  method: string,
  index: number,
  params: (task: ExpectedTask) => object,
  predict: (model: Expected, task: ExpectedTask) => Prediction,
  check: (model: Expected, task: ExpectedTask) => boolean = () => true,
  preferred: (task: ExpectedTask) => boolean = () => true,
): Command =>
  command(
    method,
    `${index}, ${JSON.stringify(params(newTask('', 0, [])))}`,
    (model) => check(model, pickWhere(model, index, preferred)),
    async (model, { server }) => {
      const task = pickWhere(model, index, preferred);
      const before = task.stand;
      const { answers, lead } = predict(model, task);
      const { result, error } = await server.call(method, { task_id: task.id, ...params(task) });
      const answer = error === undefined ? 'ok' : String(error.data.code);
      expect(answers, `${method} of ${task.id}, which is ${before}: ${error?.message}`).toContain(
        answer,
      );
      if (method === 'execute' && answer === 'ok') expect(result.attempt).toBe(task.attempt + 1);
      lead(answer);
    },
  );

const maxTurnsOf = { few: 1, many: null } as const;
const executing = (index: number, turns: keyof typeof maxTurnsOf, anyTask: boolean): Command =>
  request(
    'execute',
    index,
    () => ({
      role: 'engineer',
      options: maxTurnsOf[turns] === null ? {} : { max_turns: maxTurnsOf[turns] },
    }),
    (model, task) => execute(model, task, maxTurnsOf[turns]),
    () => true,
    ({ stand }) => anyTask || stand === 'resting',
  );
const retrying = (index: number, withRole: boolean): Command =>
  request(
    'retry',
    index,
    () => (withRole ? { role: 'tester' } : {}),
    (model, task) => retry(model, task, withRole),
  );
const reviewing = (index: number): Command =>
  request(
    'review',
    index,
    () => ({ verdict: 'request_changes', comments: [{ path: 'a.js', line: 3, text: 'why?' }] }),
    (model, task) => review(model, task),
    (model, task) => !isNeeded(model, task),
    ({ stand, attempt }) => attempt > 0 && stand !== 'asked' && stand !== 'pausing',
  );
const reopening = (index: number): Command =>
  request(
    'reopen',
    index,
    () => ({}),
    (_, task) => reopen(task),
    (model, task) => !isNeeded(model, task),
  );
const responding = (index: number, fit: Fit): Command =>
  request(
    'respond',
    index,
    ({ attempt, turns }) => ({
      attempt: Math.max(1, attempt) + (fit === 'stale attempt' ? 7 : 0),
      input_id: fit === 'wrong input' ? 'input-99' : `input-${turns}`,
      text: 'blue',
    }),
    (_, task) => respond(task, fit),
    () => true,
    ({ asking }) => asking || fit !== 'right',
  );

const creating = (priority: number, needs: readonly number[]): Command =>
  command(
    'create',
    `${priority}, [${needs}]`,
    ({ tasks }) => tasks.length < tasksAtMost,
    async (model, { server }) => {
      const dependencies = [...new Set(needs.map((index) => pick(model, index).id))];
      const { result } = await server.call('create', {
        description: 'something',
        priority,
        dependencies,
      });
      const task = newTask(result.task_id, priority, dependencies);
      expect(result.ready).toBe(unmetOf(model, task).length === 0);
      model.tasks.push(task);
    },
  );

const depending = (one: number, other: number): Command =>
  command(
    'add_dependency',
    `${one}, ${other}`,
    (model) => !isLive(pick(model, one)),
    async (model, { server }) => {
      const [task, on] = [pick(model, one), pick(model, other)];
      const { error } = await server.call('add_dependency', {
        task_id: task.id,
        depends_on: on.id,
      });
      expect(error?.data.code ?? 'ok').toBe(
        closesCycle(model, task, on) ? 'dependency_cycle' : 'ok',
      );
      if (error === undefined) task.dependencies.add(on.id);
    },
  );

const looking = (index: number): Command =>
  command(
    'status',
    `${index}`,
    () => true,
    async (model, { server }) => {
      const task = pick(model, index);
      const { result } = await server.call('status', { task_id: task.id });
      expect(result.attempt).toBe(task.attempt);
      expect(result.unmet_dependencies.toSorted()).toEqual(unmetOf(model, task).toSorted());
      if (task.stand !== 'pausing') expect(result.status).toBe(statusOf(task));
      if (result.status === 'failed')
        expect(result.error?.code ?? 'told by the tracker').toEqual(expect.any(String));
    },
  );

const explaining = (index: number): Command =>
  command(
    'explain',
    `${index}`,
    () => true,
    async (model, { server }) => {
      // It looks, and changes nothing.
      const task = { ...pick(model, index), ends: [] };
      followTracker(task);
      const { result } = await server.call('explain', { task_id: task.id });
      // A task that comes back from its pause by itself may have filled the queue.
      const isSure = (name: string): boolean =>
        !['run', 'retry'].includes(name) || model.tasks.every(({ stand }) => stand !== 'pausing');
      expect(result.allowed_events.filter(isSure), `${task.id}, which is ${task.stand}`).toEqual(
        allowedIn(model, task).filter(isSure),
      );
    },
  );

/** Requests that no state of the service makes right. */
const nonsense = (method: string): Command =>
  command(
    'nonsense',
    method,
    () => true,
    async (model, { server }) => {
      const more = method === 'respond' ? { attempt: 1, input_id: 'input-1', text: 'x' } : {};
      const params = {
        task_id: 'bd-none',
        ...(method === 'execute' ? { role: 'engineer' } : more),
      };
      expect((await server.call(method, params)).error.data.code).toBe('task_not_found');
      const { id } = pick(model, 0);
      expect((await server.call('execute', { task_id: id, role: 'janitor' })).error.data.code).toBe(
        'role_unknown',
      );
    },
  );

const fails = (task: ExpectedTask): void => {
  task.tracked = { word: 'failed', heldByAmy: false };
  end(task, 'failed');
};

const endings: Readonly<Record<End, (model: Expected, task: ExpectedTask) => void>> = {
  finish: (model, task) => {
    model.streak = 0;
    task.tracked = { word: 'closed', heldByAmy: false };
    end(task, 'complete');
  },
  giveUp: (model, task) => {
    model.streak = 0;
    fails(task);
  },
  refuse: (model, task) => {
    model.streak = 0;
    fails(task);
  },
  beBusy: (model, task) => {
    model.streak += 1;
    if (task.retriesLeft === 0) return fails(task);
    rest(task);
    task.retriesLeft -= 1;
    task.stand = 'pausing';
  },
  ask: (_, task) => {
    task.turns += 1;
    task.asking = true;
  },
};

/** The model that the agent of a task waits for answers, in one way or another. */
const ending = (index: number, how: End): Command =>
  command(
    how,
    `${index}`,
    (model) =>
      isAtWork(pickWhere(model, index, isAtWork)) &&
      (how !== 'beBusy' || model.streak < streakAtMost),
    async (model, { held }) => {
      const task = pickWhere(model, index, isAtWork);
      held.end(task.id, task.attempt, how);
      endings[how](model, task);
    },
  );

/** Somebody else closes a task. One that is at work here stays as it is. */
const amyCloses = (index: number): Command =>
  command(
    'amy closes',
    `${index}`,
    (model) => {
      const task = pick(model, index);
      // One in its pause may be at work by now.
      const isAtWorkHere = isLive(task) && (task.hasSlot || task.stand === 'pausing');
      return !isAtWorkHere && task.tracked.word !== 'closed' && unmetOf(model, task).length === 0;
    },
    async (model, { amy }) => {
      const task = pick(model, index);
      expect(await amy.close(task.id as never, 'by hand')).toEqual({ refusal: null });
      task.tracked = { word: 'closed', heldByAmy: false };
      if (isLive(task)) end(task, 'complete');
    },
  );

/** Somebody else takes a task. One that is at work here stays as it is. */
const amyClaims = (index: number): Command =>
  command(
    'amy claims',
    `${index}`,
    (model) => {
      const task = pick(model, index);
      const isFree =
        task.tracked.word !== 'closed' &&
        !task.tracked.heldByAmy &&
        unmetOf(model, task).length === 0;
      return isFree && !isLive(task);
    },
    async (model, { amy, thief }) => {
      const task = pick(model, index);
      await thief.release(task.id as never, null);
      expect(await amy.claim(task.id as never)).toEqual({ refusal: null });
      task.tracked = { word: 'open', heldByAmy: true };
    },
  );

const isHeld = ({ tracked }: ExpectedTask): boolean => tracked.heldByAmy;
const amyGivesBack = (index: number): Command =>
  command(
    'amy gives back',
    `${index}`,
    ({ tasks }) => tasks.some(isHeld),
    async (model, { amy }) => {
      const task = pickWhere(model, index, isHeld);
      await amy.release(task.id as never, null);
      task.tracked = { word: 'open', heldByAmy: false };
    },
  );

const index = fc.nat(tasksAtMost - 1);
const methods = [
  'execute',
  'status',
  'explain',
  'close',
  'reopen',
  'cancel',
  'retry',
  'respond',
  'history',
];

/**
 * Everything that people, the model and others may do; what is listed twice happens twice as often.
 */
export const everyCommand: fc.Arbitrary<Command>[] = [
  ...[true, false, false].map((anyTask) =>
    fc
      .tuple(index, fc.constantFrom('many', 'many', 'few'))
      .map(([i, turns]) => executing(i, turns, anyTask)),
  ),
  ...[1, 2].map(() => index.map((i) => ending(i, 'finish'))),
  ...(['giveUp', 'refuse', 'beBusy', 'ask'] as const).map((how) =>
    index.map((i) => ending(i, how)),
  ),
  index.map((i) => ending(i, 'ask')),
  ...[1, 2].map(() => fc.tuple(index, fc.boolean()).map(([i, withRole]) => retrying(i, withRole))),
  index.map((i) =>
    request(
      'cancel',
      i,
      () => ({}),
      (_, task) => cancel(task),
    ),
  ),
  index.map((i) => request('close', i, () => ({}), close)),
  index.map(reviewing),
  index.map(reopening),
  ...[1, 2].map(() =>
    fc
      .tuple(index, fc.constantFrom<Fit>('right', 'right', 'stale attempt', 'wrong input'))
      .map(([i, fit]) => responding(i, fit)),
  ),
  fc
    .tuple(fc.nat(4), fc.array(index, { maxLength: 2 }))
    .map(([priority, needs]) => creating(priority, needs)),
  fc.tuple(index, index).map(([one, other]) => depending(one, other)),
  index.map(looking),
  index.map(explaining),
  fc.constantFrom(...methods).map(nonsense),
  index.map(amyCloses),
  index.map(amyClaims),
  index.map(amyGivesBack),
];
