import { expect, test } from 'vitest';
import type { TaskView } from '../../src/actors/journal/task-view.ts';
import { phaseInWords } from '../../src/machines/phase.ts';
import type { Frame } from '../../web/data/frame.ts';
import { sceneAt } from '../../web/model/chart.ts';
import { causeIn } from '../../web/model/format.ts';
import { edgesAtMost, graphOf, nodesAtMost, placesAtMost } from '../../web/model/graph.ts';
import { createLog } from '../../web/model/log.ts';
import { createMoments } from '../../web/model/moments.ts';
import { groupsOf, needing } from '../../web/model/order.ts';
import { idNamed } from '../../web/model/search.ts';
import { whySkipped } from '../../web/model/skipped.ts';
import { ageOf, isToReview, lookOf, whyOf } from '../../web/model/state.ts';

/** What the graph reads of a task. */
const taskOf = (task_id: string, dependencies: readonly string[], more: object = {}) =>
  [
    task_id,
    {
      ...{ task_id, dependencies, title: task_id, status: 'queued', phase: 'waiting_for_run' },
      ...more,
    } as unknown as TaskView,
  ] as const;

test('the graph puts a task right of all that it waits for, and marks the longest open chain', () => {
  const tasks = new Map([
    taskOf('a', [], { status: 'complete' }),
    taskOf('b', ['a']),
    taskOf('c', ['b']),
    taskOf('first', [], { status: 'complete' }),
    taskOf('d', ['first', 'a', 'c']),
    taskOf('e', ['a']),
    taskOf('alone', []),
  ]);

  const { nodes, edges, critical, hidden } = graphOf(tasks);

  const layers = Object.fromEntries(nodes.map(({ task, layer }) => [task.task_id, layer]));
  expect(layers).toEqual({ a: 0, first: 0, b: 1, c: 2, d: 3, e: 1 });
  expect(critical).toEqual(['b', 'c', 'd']);
  expect(hidden).toBe(0);
  const long = edges.find(({ from, to }) => from === 'first' && to === 'd');
  expect(long?.by.map(({ layer }) => layer)).toEqual([1, 2]);
  const places = [...nodes, ...edges.flatMap(({ by }) => by)];
  expect(new Set(places.map(({ layer, row }) => `${layer} ${row}`)).size).toBe(places.length);
});

test('the graph draws the longest chain of thousands of tasks and counts the rest', () => {
  const tasks = new Map(
    Array.from({ length: 5_000 }, (_, nth) =>
      taskOf(`t${nth}`, nth === 0 ? [] : [`t${nth < 40 ? nth - 1 : nth % 40}`]),
    ),
  );

  const { nodes, critical, hidden } = graphOf(tasks);

  expect(nodes).toHaveLength(nodesAtMost);
  expect(critical).toHaveLength(41);
  expect(nodes.filter(({ isCritical }) => isCritical)).toHaveLength(41);
  expect(hidden).toBe(5_000 - nodesAtMost);
});

test('an edge that follows from others is not drawn', () => {
  const tasks = new Map([taskOf('a', []), taskOf('b', ['a']), taskOf('c', ['a', 'b', 'b'])]);

  const { edges, hiddenEdges } = graphOf(tasks);

  expect(edges.map(({ from, to }) => `${from} ${to}`)).toEqual(['a b', 'b c']);
  expect(hiddenEdges).toBe(0);
});

/** Ten dependencies each, from a fixed sequence of numbers, on the `reach` tasks before it. */
const manyTasks = (count: number, reach: number) => {
  let seed = 7;
  const number = (below: number): number => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % below;
  };
  const dependencies = (nth: number) =>
    Array.from({ length: nth === 0 ? 0 : 10 }, () => `t${nth - 1 - number(Math.min(nth, reach))}`);
  return new Map(Array.from({ length: count }, (_, nth) => taskOf(`t${nth}`, dependencies(nth))));
};

test.each([30, 300, 2_000])(
  'a bounded part of 2,000 tasks with 20,000 edges over up to %d tasks is drawn',
  (reach) => {
    const { nodes, edges, critical } = graphOf(manyTasks(2_000, reach));

    const places = edges.flatMap(({ by }) => by);
    expect(nodes.length).toBe(nodesAtMost);
    expect(edges.length).toBeLessThanOrEqual(edgesAtMost);
    expect(places.length).toBeLessThanOrEqual(placesAtMost);
    expect(edges.filter(({ isCritical }) => isCritical)).toHaveLength(
      Math.min(critical.length, nodesAtMost) - 1,
    );
  },
);

test('some of many edges that do not follow from others are drawn, and the rest is counted', () => {
  const names = (letter: string) => Array.from({ length: 70 }, (_, nth) => `${letter}${nth}`);
  const tasks = new Map([
    ...names('a').map((id) => taskOf(id, [])),
    ...names('b').map((id) => taskOf(id, names('a'))),
  ]);

  const { nodes, edges, hiddenEdges } = graphOf(tasks);

  expect(nodes).toHaveLength(140);
  expect(edges).toHaveLength(edgesAtMost);
  expect(hiddenEdges).toBe(70 * 70 - edgesAtMost);
});

test('a list of tasks with a cycle, which the server refuses, is drawn all the same', () => {
  const { nodes } = graphOf(new Map([taskOf('a', ['b']), taskOf('b', ['a'])]));

  expect(nodes).toHaveLength(2);
});

const snapshot = (seq: number, machine: string, value: unknown, attempt = 1): Frame => ({
  ...{ type: 'snapshot', task_id: 'bd-a', seq, timestamp: '2026-01-01T00:00:00.000Z', attempt },
  data: { machine, value },
});

test('a chart shows the state at an entry, with the states that were passed at once', () => {
  const moments = createMoments()([
    snapshot(1, 'task', { queued: 'checking' }, 0),
    snapshot(3, 'task', { queued: 'asking' }, 0),
    snapshot(5, 'task', { started: 'working' }),
    snapshot(6, 'agent', 'thinking'),
    snapshot(9, 'agent', 'acting'),
  ]);

  const scene = sceneAt(moments, 'task', 4);
  expect(scene.here).toBe('queued.asking');
  expect([...scene.visited].map((id) => id.replace('queued.', ''))).toEqual(
    expect.arrayContaining([
      'checking',
      'existing',
      'ready',
      'free',
      'placed',
      'equipped',
      'funded',
      'asking',
    ]),
  );
  expect(scene.last).toContain('queued.funded queued.asking');
  expect(sceneAt(moments, 'agent', 4).here).toBeNull();
  expect(sceneAt(moments, 'agent', 8).here).toBe('thinking');
});

test.each([
  ['parked', { status: 'queued', parked_until: '2026-01-01T14:30:00.000Z' }, 'slot', 'Parked'],
  ['before a retry', { status: 'queued' }, 'slot', 'Pausing'],
  ['inside an attempt', { status: 'started' }, 'working', 'Pausing'],
])('a pause (%s) has its own column and word', (_, more, column, word) => {
  const [, task] = taskOf('a', [], { phase: 'backing_off', ...more });

  expect(lookOf(task)).toMatchObject({ column, word });
});

test.each([
  ['complete', {}, 'review', 'Ready to merge'],
  ['of a failed attempt that was closed by hand', { incomplete: true }, 'done', 'Done'],
])('work (%s) has its own column and word', (_, more, column, word) => {
  const work = { files: 1, insertions: 1, deletions: 0, ...more };
  const [, task] = taskOf('a', [], { status: 'complete', work });

  expect(lookOf(task)).toMatchObject({ column, word });
});

test('a step of a person comes before work to merge, since the rest of its workflow waits', () => {
  const work = { files: 1, insertions: 1, deletions: 0 };
  const tasks = new Map([
    taskOf('a', [], { status: 'complete', work, unmet_dependencies: [], updated_at: '1' }),
    taskOf('b', [], { phase: 'waiting_for_person', unmet_dependencies: [], updated_at: '2' }),
  ]);

  expect(needing(tasks).map(({ task_id }) => task_id)).toEqual(['b', 'a']);
});

test('a question of an agent at work comes before what failed and holds up others', () => {
  const tasks = new Map([
    taskOf('failed', [], { status: 'failed', unmet_dependencies: [], updated_at: '1' }),
    taskOf('next', ['failed'], { status: 'queued', unmet_dependencies: ['failed'] }),
    taskOf('asks', [], {
      ...{ status: 'started', unmet_dependencies: [], updated_at: '2' },
      awaiting: { kind: 'input', question: 'Red?' },
    }),
  ]);

  expect(needing(tasks).map(({ task_id }) => task_id)).toEqual(['asks', 'failed']);
});

test('a task is named by its title, by a part of it, or by its id', () => {
  const tasks = new Map([
    taskOf('bd-1', [], { title: 'Fix the login form' }),
    taskOf('bd-2', [], { title: 'Fix the logout form' }),
    taskOf('bd-3', [], { title: 'Fix' }),
  ]);

  expect(idNamed('Fix', tasks)).toBe('bd-3');
  expect(idNamed('LOGIN', tasks)).toBe('bd-1');
  expect(idNamed('bd-2', tasks)).toBe('bd-2');
  expect(idNamed('bd-9', tasks)).toBe('bd-9');
  expect(() => idNamed('form', tasks)).toThrow('2 tasks have “form” in their title; write an id');
});

test('a question waits since it was asked, also when its task changed meanwhile', () => {
  const changed = {
    ...{ status: 'started', unmet_dependencies: [] },
    updated_at: '2026-01-01T01:00:00Z',
  };
  const awaiting = { kind: 'input', question: 'Red?' };
  const tasks = new Map([
    taskOf('later', [], { ...changed, awaiting, waits_since: '2026-01-01T00:59:00Z' }),
    taskOf('first', [], { ...changed, awaiting, waits_since: '2026-01-01T00:00:00Z' }),
  ]);

  const rows = needing(tasks);

  expect(rows.map(({ task_id }) => task_id)).toEqual(['first', 'later']);
  const at = Date.parse('2026-01-01T02:00:00Z');
  expect(rows.map((task) => ageOf(task, undefined, at))).toEqual(['2 h', '1 h']);
});

test('tasks are grouped by label, in each of their own, and few columns are left', () => {
  const labels = Array.from({ length: 20 }, (_, nth) => `l${nth}`);
  const tasks = [
    taskOf('a', [], { labels: ['l0', 'role:tester'] }),
    taskOf('b', [], { labels }),
    taskOf('c', [], { labels: ['role:tester'], role: 'tester' }),
  ].map(([, task]) => task);

  const groups = groupsOf(tasks, 'label');
  const names = groups.map(([name, all]) => [name, all.map(({ task_id }) => task_id).join()]);
  expect(names[0]).toEqual(['l0', 'a,b']);
  expect(names.slice(-2)).toEqual([
    ['Other labels', 'b'],
    ['No label', 'c'],
  ]);
  expect(groups).toHaveLength(14);
  expect(groupsOf(tasks, 'role').map(([name, all]) => [name, all.length])).toEqual([
    ['tester', 1],
    ['No role', 2],
  ]);
});

test('the log names the calls that an approval asks to allow', () => {
  const calls = [
    { call_id: '1', tool: 'bash', arguments: '{"command":"npm install\\nnpm test"}' },
    { call_id: '2', tool: 'write', arguments: '{"path":"a.js","content":"x"}' },
  ];
  const frame = {
    ...{ type: 'approval_required', task_id: 'bd-a1', attempt: 1, seq: 1 },
    ...{ timestamp: '2026-01-01T00:00:00.000Z', data: { question: 'May it?', calls } },
  };

  expect(createLog(1)([frame])).toMatchObject([
    { kind: 'note', text: 'asks permission: bash npm install\nnpm test\nwrite a.js' },
  ]);
  const again = { ...frame, data: { question: 'May it?', calls: [], again: true } };
  expect(createLog(1)([again])).toMatchObject([
    { kind: 'note', text: 'asks permission again, after a restart of the server: May it?' },
  ]);
});

test('the cause of a failure is its first line, without the middle of a long one', () => {
  const command = 'x'.repeat(500);

  expect(causeIn('no disk\n  at a\n  at b')).toBe('no disk');
  expect(causeIn(`the command "${command}" ended with exit code 1`)).toMatch(
    /^the command "x+ … x+" ended with exit code 1$/,
  );
  expect(causeIn(`the command "${command}" ended with exit code 1`).length).toBeLessThan(250);
});

test.each([
  ['waiting_for_run', 'queued'],
  ['waiting_for_dependencies', 'queued'],
  ['waiting_for_slot', 'queued'],
  ['waiting_for_tracker', 'queued'],
  ['thinking', 'started'],
  ['acting', 'started'],
])('the page names the phase %s as the command line does', (phase, status) => {
  const [, task] = taskOf('a', [], { status, phase, ready: true });

  expect(lookOf(task).word.toLowerCase()).toBe(phaseInWords(phase));
});

test('tasks that a run did not start are named by reason, and long lists are cut', () => {
  const skip = (task_id: string, code: string, reason = 'it says so; use: agent edit') => ({
    ...{ task_id, code, reason },
  });
  const some = [skip('bd-a', 'no_role'), skip('bd-b', 'no_role'), skip('bd-c', 'x', 'it is odd')];
  const many = Array.from({ length: 200 }, (_, nth) => skip(`t${nth}`, 'no_role'));
  const odd = Array.from({ length: 50 }, (_, nth) => skip(`t${nth}`, 'x', `reason ${nth}`));

  expect(whySkipped(some)).toBe(
    'bd-a, bd-b (no role yet, choose one and run it); bd-c (it is odd)',
  );
  expect(whySkipped(many)).toMatch(/^t0, .*, t7 and 192 more \(no role yet/);
  expect(whySkipped(odd)).toMatch(/t3 \(reason 3\); 46 more for other reasons$/);
});

const open = { number: 7, state: 'open', checks: 'green', review: 'none', mergeable: 'yes' };
test.each([
  ['waits for a review', { ...open, waits_for: 'review', reason: 'nobody' }, 'forge', 'In review'],
  ['is merged by the server', { ...open, state: 'merging' }, 'forge', 'In review'],
  ['has red checks', { ...open, checks: 'red', waits_for: 'person' }, 'needs', 'Checks failed'],
  ['conflicts', { ...open, mergeable: 'conflicting', waits_for: 'person' }, 'needs', 'Conflicts'],
  ['was refused', { state: 'publishing', waits_for: 'person' }, 'needs', 'Not published'],
  ['is merged', { ...open, state: 'merged' }, 'done', 'Merged'],
  ['was closed', { ...open, state: 'closed' }, 'review', 'Ready to merge'],
])('a task whose pull request %s is where its next step is', (_, pull_request, column, word) => {
  const work = { files: 1, insertions: 1, deletions: 0 };
  const more = {
    status: 'complete',
    phase: 'complete',
    work,
    pull_request: { round: 0, ...pull_request },
  };
  const [, task] = taskOf('t', [], more);

  expect(lookOf(task)).toMatchObject({ column, word });
  expect(isToReview(task)).toBe(column === 'review');
  expect(whyOf(task, undefined, new Map())).toMatch(/#7|its pull request/);
});
