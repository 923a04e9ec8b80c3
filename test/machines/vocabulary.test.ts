import { expect, test } from 'vitest';
import type { AnyStateMachine } from 'xstate';
import { createActor, toPromise } from 'xstate';
import { toView } from '../../src/actors/journal/task-view.ts';
import { trackedFromView } from '../../src/actors/journal/transition-frames.ts';
import { agentMachine } from '../../src/machines/agent/agent-machine.ts';
import { declareActor } from '../../src/machines/declare-actor.ts';
import {
  describeRefusal,
  type ErrorCode,
  type ErrorFacts,
  refusal,
  requireRole,
  ServiceError,
} from '../../src/machines/errors.ts';
import { slotGuards } from '../../src/machines/supervisor/supervisor-context.ts';
import { supervisorMachine } from '../../src/machines/supervisor/supervisor-machine.ts';
import { allowedCommands, refuses } from '../../src/machines/task/command-refusals.ts';
import { runGuards } from '../../src/machines/task/run-guards.ts';
import { taskMachine } from '../../src/machines/task/task-machine.ts';
import { parseTaskId, type TaskId } from '../../src/machines/task.ts';
import { statusInTracker, type TrackedTask } from '../../src/machines/tracked-task.ts';
import { workflowGuards, workflowMachine } from '../../src/machines/workflow/workflow-machine.ts';

import { at, nodesOf } from './chart.ts';

const id = 'bd-a1' as TaskId;

test.each([
  'bd-a1b2',
  'xasm-vp5',
  'bd-a3f8.1',
  'my.app-x3f',
  'xasm++-vp5',
  'bd-1',
  'a-b-c-d4',
  'bd-a.1.2.3',
])('%s is an id', (text) => {
  expect(parseTaskId(text)).toBe(text);
});

test.each([
  '',
  '-x',
  '--help',
  '../x',
  'bd-..',
  'bd',
  'bd-',
  'null',
  'a b',
  'bd-a b',
  'bd-a\0',
  'bd-a\n',
  'bd/a-1',
  `bd-${'x'.repeat(200)}`,
  '$(id)-1',
])('%j is not an id', (text) => {
  expect(parseTaskId(text)).toBeNull();
});

const facts: { readonly [Code in ErrorCode]: readonly [ErrorFacts[Code], string] } = {
  task_not_found: [{ task_id: 'bd-x' }, 'task bd-x does not exist'],
  dependencies_unmet: [
    { task_id: id, unmet: ['bd-b' as TaskId, 'bd-c' as TaskId] },
    'task has unmet dependencies [bd-b, bd-c]',
  ],
  dependency_cycle: [
    { cycle: [id, 'bd-b' as TaskId, id] },
    'the dependency would close a cycle: bd-a1 -> bd-b -> bd-a1',
  ],
  already_running: [{ task_id: id, attempt: 2 }, 'task bd-a1 is already running as attempt 2'],
  event_not_allowed: [
    { task_id: id, event: 'run', state: 'complete', allowed: ['reopen'] },
    'task bd-a1 is complete: run is not allowed now; allowed: reopen',
  ],
  role_unknown: [
    { role: 'janitor' },
    'unknown role "janitor"; the roles are engineer, tester, reviewer, architect, product-manager',
  ],
  stale_attempt: [
    { task_id: id, attempt: 1, live_attempt: 2 },
    'attempt 1 of task bd-a1 is over; the live one is 2',
  ],
  queue_full: [{ limit: 5, retry_after_seconds: 10 }, 'the queue is full (5 tasks)'],
  credential_missing: [{ variable: 'OPENAI_API_KEY' }, 'OPENAI_API_KEY is not set'],
  tracker_unavailable: [
    { detail: 'bd broke', remedy: 'mend it' },
    'the task tracker cannot be used: bd broke; mend it',
  ],
  tracker_conflict: [{ task_id: id, holder: 'ann' }, 'task bd-a1 is held by ann'],
  forbidden: [
    { needs: 'run', name: 'ana', rights: 'read' },
    'the token ana has the right read, and this needs run; ask who runs the server for a token with it',
  ],
  project_refused: [
    { path: '/home/a', problem: 'is your home folder', remedy: 'go to your project' },
    '/home/a is your home folder; go to your project',
  ],
  invalid_params: [{ fields: [{ path: 'a.b', problem: 'is empty' }] }, 'a.b: is empty'],
  internal: [{ detail: null }, 'internal error; the server log has the details'],
};

test.each(Object.entries(facts))('%s has its own message', (code, [given, message]) => {
  const thrown = ServiceError.from(refusal(code as ErrorCode, given as never));

  expect(thrown.message.startsWith(message)).toBe(true);
  expect(thrown).toMatchObject({ code, facts: given });
  expect(describeRefusal(refusal('internal', { detail: null }))).not.toContain('secret');
});

test('a role is one of the five', () => {
  expect(requireRole('product-manager')).toBe('product-manager');
  expect(() => requireRole('toString')).toThrow(ServiceError);
});

const snapshotIn = (value: unknown, over: object = {}) => {
  const { context } = createActor(taskMachine, { input: { taskId: id } }).getSnapshot();
  return taskMachine.resolveState({ value: value as never, context: { ...context, ...over } });
};

test.each([
  [{ queued: 'idle' }, ['run', 'close', 'cancel']],
  [{ queued: 'refused' }, ['run', 'close', 'cancel']],
  [{ queued: 'checking' }, ['cancel']],
  [{ queued: 'waitingForSlot' }, ['cancel']],
  [{ queued: 'backingOff' }, ['cancel']],
  [{ queued: 'parked' }, ['retry', 'close', 'cancel']],
  [{ started: 'working' }, ['cancel']],
  [{ started: 'closing' }, []],
  [{ started: 'cancelling' }, ['cancel']],
  ['complete', ['reopen']],
  ['failed', ['retry', 'close']],
  ['cancelled', ['retry', 'close', 'cancel']],
])('in %j exactly these commands are allowed', (value, allowed) => {
  expect(allowedCommands(snapshotIn(value), false)).toEqual(allowed);
});

test.each([
  [{ queued: 'idle' }, true],
  [{ queued: 'checking' }, false],
  [{ started: 'working' }, false],
  ['complete', true],
  ['failed', true],
  ['cancelled', true],
])('in %j the work of an attempt takes a review: %j', (value, takes) => {
  expect(allowedCommands(snapshotIn(value, { attempt: 1 }), false).includes('review')).toBe(takes);
});

test('a refused command names the attempt, or the state and what is allowed', () => {
  const run = { type: 'run', role: 'engineer', options: {}, maxRetries: 0, at } as const;
  const reopen = { type: 'reopen', reason: null, at } as const;

  expect(refuses(snapshotIn({ started: 'working' }, { attempt: 2 }), null, run)).toEqual(
    refusal('already_running', { task_id: id, attempt: 2 }),
  );
  expect(refuses(snapshotIn({ queued: 'waitingForSlot' }, { attempt: 2 }), null, run)).toEqual(
    refusal('already_running', { task_id: id, attempt: 3 }),
  );
  expect(refuses(snapshotIn({ queued: 'idle' }), null, reopen)).toEqual(
    refusal('event_not_allowed', {
      task_id: id,
      event: 'reopen',
      state: 'queued',
      allowed: ['run', 'close', 'cancel'],
    }),
  );
  expect(refuses(snapshotIn('complete'), null, run)).toMatchObject({
    code: 'event_not_allowed',
    facts: { state: 'complete' },
  });
  expect(refuses(snapshotIn({ queued: 'idle' }), null, run)).toBeNull();
});

test.each<[string, readonly string[], string]>([
  ['open', [], 'queued'],
  ['open', ['agent-failed'], 'failed'],
  ['open', ['agent-cancelled'], 'cancelled'],
  ['in_progress', [], 'started'],
  ['closed', ['agent-failed'], 'complete'],
  ['hooked', [], 'hooked'],
])('%s with %j is %s', (status, labels, expected) => {
  expect(statusInTracker({ status, labels })).toBe(expected);
});

const tracked = (over: Partial<TrackedTask> = {}): TrackedTask => ({
  id,
  title: 'A task',
  description: 'about it',
  status: 'open',
  priority: 2,
  labels: [],
  assignee: null,
  dependencies: [],
  unmet: [],
  ready: true,
  createdAt: '2026-11-20T10:00:00.000Z',
  updatedAt: '2026-11-20T10:00:00.000Z',
  closedAt: null,
  ...over,
});
const viewOf = (value: unknown, context: object = {}, over: Partial<TrackedTask> = {}) =>
  toView({ tracked: tracked(over), task: snapshotIn(value, context), agent: null, changedAt: 0 });

test.each([
  ['in_progress', 'started'],
  ['closed', 'complete'],
  ['blocked', 'blocked'],
  ['open', 'queued'],
])(
  'a request that ends in an outage leaves a task that is %s in the tracker %s',
  (status, shown) => {
    const asked = viewOf({ queued: 'checking' }, {}, { status, assignee: 'amy' });
    const known = trackedFromView(asked, 'agent-server');
    const refused = viewOf({ queued: 'refused' }, {}, known);
    const again = trackedFromView(refused, 'agent-server');

    expect(asked.status).toBe('queued');
    expect([refused.status, viewOf({ queued: 'idle' }, {}, again).status]).toEqual([shown, shown]);
    expect(again.assignee).toBe(null);
  },
);

test('the view of a task without a run comes from the tracker alone', () => {
  const view = toView({
    tracked: tracked({ unmet: ['bd-b' as TaskId], ready: false, labels: ['role:tester'] }),
    task: null,
    agent: null,
    changedAt: 0,
  });

  expect(view).toMatchObject({
    status: 'queued',
    phase: 'waiting_for_dependencies',
    ready: false,
    attempt: 0,
    role: 'tester',
    progress: 0,
  });
  expect(view).not.toHaveProperty('error');
});

test.each([
  [{ queued: 'checking' }, 'queued', 'preparing'],
  [{ queued: 'waitingForSlot' }, 'queued', 'waiting_for_slot'],
  [{ queued: 'backingOff' }, 'queued', 'backing_off'],
  [{ queued: 'parked' }, 'queued', 'backing_off'],
  [{ started: 'claiming' }, 'started', 'preparing'],
  [{ started: 'verifying' }, 'started', 'verifying'],
  [{ started: 'recording' }, 'started', 'closing'],
  [{ started: 'cancelling' }, 'started', 'cancelling'],
])('in %j the machine determines %s, %s, whatever the tracker says', (value, status, phase) => {
  expect(viewOf(value, { attempt: 1 }, { status: 'closed' })).toMatchObject({ status, phase });
});

test('the view of an ended task follows the tracker, with result or error', () => {
  const outcome = { status: 'done', summary: 'all good', artifacts: [], usage: {} };
  const failure = { code: 'timed_out', message: 'late', facts: { limit: 1 }, retryable: false };

  const complete = viewOf(
    'complete',
    { attempt: 1, outcome, startedAt: 5, completedAt: 9 },
    { status: 'closed' },
  );
  const failed = viewOf('failed', { attempt: 1, failure }, { labels: ['agent-failed'] });
  const reopened = viewOf('complete', { attempt: 1, outcome }, { status: 'open' });

  expect(complete).toMatchObject({
    status: 'complete',
    phase: 'complete',
    progress: 1,
    result: 'all good',
    completed_at: '1970-01-01T00:00:00.009Z',
  });
  expect(failed).toMatchObject({
    status: 'failed',
    error: { code: 'timed_out', message: 'late', facts: { limit: 1 } },
  });
  expect(reopened).toMatchObject({ status: 'queued', ready: true });
  expect(reopened).not.toHaveProperty('result');
});

test('a refusal is shown while the task rests', () => {
  const view = viewOf(
    { queued: 'refused' },
    { refusal: refusal('queue_full', { limit: 3, retry_after_seconds: 10 }) },
  );

  expect(view.error).toMatchObject({ code: 'queue_full', facts: { limit: 3 } });
});

test('an actor that was not provided rejects with its name', async () => {
  const actor = createActor(declareActor<void, void>('claim'));
  actor.subscribe({ error: () => {} });
  const ended = toPromise(actor);
  actor.start();

  await expect(ended).rejects.toThrow('actor "claim" was not provided');
});

const machines: readonly (readonly [string, AnyStateMachine])[] = [
  ['task', taskMachine],
  ['agent', agentMachine],
  ['supervisor', supervisorMachine],
];

test.each(machines)(
  'every invoke of the %s has a name, and handles success and error',
  (_, machine) => {
    for (const node of nodesOf(machine.root))
      for (const { id: work } of node.invoke) {
        const events = [...node.transitions.keys()];
        expect(work).not.toContain('.');
        expect(events).toEqual(
          expect.arrayContaining([`xstate.done.actor.${work}`, `xstate.error.actor.${work}`]),
        );
      }
  },
);

test.each(machines)('no state of the %s uses a timer that a restart would lose', (_, machine) => {
  for (const node of nodesOf(machine.root))
    expect(Object.keys(node.config.after ?? {})).toEqual([]);
});

test.each(machines)('every state of the %s has a description, or decides at once', (_, machine) => {
  for (const node of nodesOf(machine.root)) {
    if (node === (machine.root as never) || Object.keys(node.states).length > 0) continue;
    expect([
      node.id,
      typeof node.meta?.['says'] === 'string' || (node.always?.length ?? 0) > 0,
    ]).toEqual([node.id, true]);
  }
});

test.each(machines)('the context of the %s survives JSON', (_, machine) => {
  const input = {
    taskId: id,
    attempt: 1,
    role: 'engineer',
    options: {},
    limits: { deadlineAt: 5 },
    cap: 3,
    roleCaps: {},
  };
  const { context } = createActor(machine, { input: input as never }).getSnapshot();

  expect(JSON.parse(JSON.stringify(context))).toEqual(context);
});

test.each([
  ['task', taskMachine, runGuards],
  ['supervisor', supervisorMachine, slotGuards],
  ['workflow', workflowMachine, workflowGuards],
])(
  'each guard that explain evaluates is one that the chart of the %s asks',
  (_, machine, guards) => {
    const asked = [...JSON.stringify(machine.config).matchAll(/"guard":(?:\{"type":)?"(\w+)"/g)];

    expect(asked.map(([, name]) => name)).toEqual(expect.arrayContaining(Object.keys(guards)));
  },
);
