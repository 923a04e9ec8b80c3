import type { TaskView } from '../../src/actors/journal/task-view.ts';
import type { Issue } from '../../src/actors/ledger/issue.ts';
import { isServiceError } from '../../src/machines/errors.ts';
import { atOnce } from './at-once.ts';
import type { Server } from './life.ts';
import { createMergers, type Mergers } from './mergers.ts';
import type { World } from './world.ts';

/** Who asks the server for things, and who changes the tracker behind its back. */
export interface People {
  /** One act of somebody, chosen by chance. */
  act(): void;
  /** A new task, on which it may depend. */
  create(): void;
  /** Answers whatever an agent asks. */
  answerAll(): void;
  /** Asks again what a dead server never answered. */
  askAgain(): void;
  readonly mergers: Mergers;
  readonly created: ReadonlySet<string>;
  /** Tasks that were changed behind the back of the server. */
  readonly touched: ReadonlySet<string>;
}

interface Order {
  readonly task: string;
  readonly requestId: string;
  /** How many runs of the task were asked for when this one was. */
  readonly runsBefore: number;
}

export const createPeople = (
  world: World,
  serverNow: () => Server | null,
  maxTasks: number,
  /** Half of the runs wait for their dependencies. */
  waitsWhenAsked: boolean,
): People => {
  const { random, invariants, clock } = world;
  const created = new Set<string>();
  const touched = new Set<string>();
  const unanswered = new Map<string, Order>();
  let requests = 0;
  let reviews = 0;

  const anyTask = (): string | null => {
    const [first, ...more] = created;
    return first === undefined ? null : random.pick([first, ...more]);
  };

  /** Nobody hears what a dead server would have said. */
  const ask = <Result>(
    wish: (server: Server) => Promise<Result>,
    hear: (result: Result) => void,
  ): void => {
    const server = serverNow();
    if (server === null) return;
    wish(server).then(
      (result) => {
        if (server.alive) hear(result);
      },
      (error: unknown) => {
        if (!server.alive) return;
        const known =
          isServiceError(error) &&
          (error.code !== 'internal' || /disk is full|is stopping|try again/.test(error.message));
        if (!known)
          invariants.violated(`a request ended in ${error instanceof Error ? error.stack : error}`);
      },
    );
  };

  const create = (): void => {
    if (created.size >= maxTasks) return;
    const dependencies = [...created].filter(() =>
      random.chance(world.project === null ? 0.25 : 0.1),
    );
    const priority = random.below(3);
    ask(
      ({ system }) => system.service.create({ description: 'a task', dependencies, priority }),
      ({ task_id }) => {
        if (!world.ledger.db.ask(world.ledger.table.has(task_id)))
          invariants.violated(`I10 ${task_id} was said to be created and is not`);
        created.add(task_id);
        // Work that can be merged.
        if (world.project !== null) execute(task_id);
      },
    );
  };

  const order = (wanted: Order): void => {
    unanswered.set(wanted.requestId, wanted);
    const { task, requestId, runsBefore } = wanted;
    const role = Number(requestId) % 3 === 0 ? 'tester' : 'engineer';
    const options = waitsWhenAsked && Number(requestId) % 2 === 0 ? { when: 'ready' as const } : {};
    ask(
      ({ system }) =>
        system.service.execute({ task, role, options, requestId }).finally(() => {
          if (serverNow()?.system === system) unanswered.delete(requestId);
        }),
      ({ task_id }) => {
        if (invariants.runsOf(task_id) <= runsBefore)
          invariants.violated(`I10 a run of ${task_id} was acknowledged and is not in the journal`);
      },
    );
  };

  const execute = (task = anyTask()): void => {
    if (task === null) return;
    requests += 1;
    const wanted = { task, requestId: String(requests), runsBefore: invariants.runsOf(task) };
    order(wanted);
    // Impatient people press twice.
    if (random.chance(0.2)) clock.after('world', random.delay(500), () => order(wanted));
  };

  const command = (what: 'cancel' | 'retry' | 'close' | 'reopen'): void => {
    const task = anyTask();
    if (task === null) return;
    const wish = ({ system: { service } }: Server): Promise<TaskView> =>
      what === 'retry' ? service.retry(task, null, null, null) : service[what](task, null);
    ask(wish, (view) => {
      if (
        what === 'cancel' &&
        !['cancelled', 'complete', 'failed', 'queued', 'started'].includes(view.status)
      )
        invariants.violated(`a cancel of ${task} left it ${view.status}`);
    });
  };

  const review = (): void => {
    const task = anyTask();
    if (task === null) return;
    reviews += 1;
    const text = `[comment ${reviews}]`;
    const comments = [{ path: 'a.js', line: 1, endLine: null, text }];
    const isRequest = random.chance(0.7);
    const verdict = isRequest ? ('request_changes' as const) : ('comment' as const);
    ask(
      ({ system }) => system.service.review(task, { verdict, attempt: null, comments }),
      () => {},
    );
  };

  const respond = (task: string, stale: boolean): void => {
    ask(
      async ({ system: { service } }) => {
        const view = await service.status(task);
        if (view.awaiting === undefined) return null;
        const { input_id: inputId, kind } = view.awaiting;
        const repeats = kind === 'input' && random.chance(0.5);
        if (repeats) invariants.mayRepeat(task);
        const attempt = stale ? view.attempt + random.pick([-1, 1]) : view.attempt;
        return service.respond(task, attempt, {
          type: 'respond',
          inputId,
          text: repeats ? 'repeat' : 'the first',
          decision: kind === 'approval' ? random.pick(['allow', 'deny']) : null,
        });
      },
      () => {},
    );
  };

  const explain = (): void => {
    const task = anyTask();
    if (task === null) return;
    ask(
      ({ system }) => system.service.explain(task),
      ({ reason, state }) => {
        const idle = typeof state === 'object' && state !== null && 'queued' in state;
        const waits = idle && ['idle', 'refused', 'waitingForSlot'].includes(String(state.queued));
        if (reason === null && waits)
          invariants.violated(`I13 ${task} is ${JSON.stringify(state)} without a reason`);
      },
    );
  };

  const outsider = (): void => {
    const id = anyTask();
    const issue = id === null ? undefined : world.ledger.db.ask(world.ledger.table.get(id));
    if (id === null || issue === undefined) return;
    const at = new Date(clock.now()).toISOString();
    const { assignee: _, ...free } = issue;
    const changed = random.pick<Issue>([
      { ...issue, status: 'closed', closed_at: at },
      { ...issue, status: 'in_progress', assignee: 'amy' },
      { ...free, status: 'open' },
    ]);
    const next = { ...changed, updated_at: at };
    touched.add(id);
    atOnce(world.ledger.db.write(() => world.ledger.table.put(next)));
    // A disk that is full now is written by the server later.
    world.ledger.exchange.flush().catch(world.ledger.exchange.changed);
  };

  const mergers = createMergers(world, ask, anyTask);

  return {
    mergers,
    created,
    touched,
    create,
    answerAll: () => {
      for (const task of created) respond(task, false);
    },
    askAgain: () => {
      for (const wanted of unanswered.values()) order(wanted);
    },
    act: () => {
      if (world.project !== null && random.chance(0.3)) return mergers.act();
      const draw = random.below(100);
      if (draw < 10) create();
      else if (draw < 52) execute();
      else if (draw < 64) command('cancel');
      else if (draw < 72) command('retry');
      else if (draw < 75) command('close');
      else if (draw < 78) command('reopen');
      else if (draw < 90) respond(anyTask() ?? '', random.chance(0.2));
      else if (draw < 96) explain();
      else if (world.hasLimits && draw < 98) review();
      else outsider();
    },
  };
};
