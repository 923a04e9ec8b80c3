import { expect, test } from 'vitest';
import { createActor, fromPromise } from 'xstate';
import type { AgentContext } from '../../src/machines/agent/agent-context.ts';
import { agentMachine } from '../../src/machines/agent/agent-machine.ts';
import { agentRestart } from '../../src/machines/agent/restart.ts';
import { taskMachine } from '../../src/machines/task/task-machine.ts';
import type { TaskId } from '../../src/machines/task.ts';
import { nodesOf, pathOf, step } from './chart.ts';

const leavesOf = (machine: typeof taskMachine | typeof agentMachine): readonly string[] =>
  nodesOf(machine.root)
    .filter(({ states, path }) => Object.keys(states).length === 0 && path.length > 0)
    .map(({ path }) => path.join('.'));

const context = createActor(taskMachine, { input: { taskId: 'bd-a' as TaskId } }).getSnapshot()
  .context;

/** Creates a real actor from a saved task and reports what it does. */
const restarted = (state: string): { works: readonly string[]; ends: string; pending: boolean } => {
  const works: string[] = [];
  const begins = (name: string) =>
    fromPromise<never, never>(() => {
      works.push(name);
      return new Promise(() => {});
    });
  const names = Object.keys(taskMachine.implementations.actors) as never[];
  const machine = taskMachine.provide({
    actors: Object.fromEntries(names.map((name) => [name, begins(name)])),
  });
  const saved = step(
    machine,
    state,
    { ...context, attempt: 1, deadlineAt: 1 },
    { type: 'nothing' },
  );
  // As XState saves it: with its running invokes.
  const inside = nodesOf(machine.root).filter(({ path }) =>
    `${state}.`.startsWith(`${path.join('.')}.`),
  );
  const snapshot = { status: 'active', input: {} };
  const children = inside.flatMap(({ invoke }) =>
    invoke.map(({ id, src }) => [id, { src, snapshot, syncSnapshot: false }]),
  );
  const persisted = {
    ...machine.getPersistedSnapshot(saved as never),
    children: Object.fromEntries(children),
  };
  const actor = createActor(machine, {
    snapshot: JSON.parse(JSON.stringify(persisted)),
    input: { taskId: 'bd-a' as TaskId },
  });
  actor.start();
  const found = actor.getSnapshot();
  actor.stop();
  return { works, ends: pathOf(found), pending: found.hasTag('pending') };
};

/**
 * - `rest`: nothing; somebody must ask first
 * - `repeat`: the actor of the state starts again; all of it may be done twice
 * - `resume`: the agent goes on where it was, by `agentRestart`
 * - `wait`: nothing until the deadline
 * - `never`: the state is left in the moment in which it is entered, so no task is saved in it
 */
type OnRestart = 'rest' | 'repeat' | 'resume' | 'wait' | 'never';

const taskRestart: Readonly<Record<string, OnRestart>> = {
  'queued.idle': 'rest',
  'queued.refused': 'rest',
  'queued.checking': 'repeat',
  'queued.existing': 'never',
  'queued.ready': 'never',
  'queued.free': 'never',
  'queued.placed': 'never',
  'queued.equipped': 'never',
  'queued.funded': 'never',
  'queued.waitingForDependencies': 'repeat',
  'queued.asking': 'repeat',
  'queued.waitingForSlot': 'repeat',
  'queued.backingOff': 'wait',
  'queued.parked': 'wait',
  'queued.givingUp': 'repeat',
  'queued.restarting': 'repeat',
  'queued.yielding': 'repeat',
  'queued.standingDown': 'repeat',
  'queued.releasing': 'repeat',
  'queued.cancelling': 'repeat',
  'queued.closing': 'repeat',
  'queued.reopening': 'repeat',
  'queued.sendingBack': 'repeat',
  'started.claiming': 'repeat',
  'started.working': 'resume',
  'started.verifying': 'repeat',
  'started.recording': 'repeat',
  'started.merging': 'repeat',
  'started.returning': 'repeat',
  'started.closing': 'repeat',
  'started.failing': 'repeat',
  'started.parking': 'repeat',
  'started.cancelling': 'repeat',
  'started.standingDown': 'repeat',
  'started.yielding': 'repeat',
  'started.telling.claiming': 'wait',
  'started.telling.recording': 'wait',
  'started.telling.merging': 'wait',
  'started.telling.returning': 'wait',
  'started.telling.closing': 'wait',
  'started.telling.failing': 'wait',
  'started.telling.parking': 'wait',
  'started.telling.cancelling': 'wait',
  complete: 'rest',
  failed: 'rest',
  cancelled: 'rest',
};

const shouldBe: Readonly<Record<OnRestart, (given: ReturnType<typeof restarted>) => boolean>> = {
  rest: ({ works, pending }) => works.length === 0 && !pending,
  repeat: ({ works, pending }) =>
    works.some((work) => work !== 'holdSlot') && !works.includes('runAttempt') && pending,
  resume: ({ works }) => works.includes('runAttempt'),
  wait: ({ works, pending }) => works.every((work) => work === 'holdSlot') && pending,
  never: () => true,
};

test('the restart tables have every state of the machines, and no other', () => {
  expect(Object.keys(taskRestart).toSorted()).toEqual(leavesOf(taskMachine).toSorted());
  expect(Object.keys(agentRestart).toSorted()).toEqual(leavesOf(agentMachine).toSorted());
});

test.each(Object.entries(taskRestart))(
  'a task that was %s does after a restart what the table says: %s',
  (state, does) => {
    const node = nodesOf(taskMachine.root).find(({ path }) => path.join('.') === state);
    if (does === 'never') expect(node?.always).not.toEqual([]);
    else {
      const after = restarted(state);
      expect(after.ends).toBe(state);
      expect([state, after.works, shouldBe[does](after)]).toEqual([state, after.works, true]);
      if (state.startsWith('started.')) expect(after.works).toContain('holdSlot');
    }
  },
);

test('an agent that was interrupted again during preparation resumes at its earlier state', () => {
  const { preparing } = agentRestart;
  if (typeof preparing !== 'function') throw new Error('where it goes on depends on its context');

  const at = (resumeAt: 'acting' | null) => preparing({ resumeAt } as AgentContext);

  expect([at('acting'), at(null)]).toEqual(['acting', null]);
});
