import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { proveRecording } from '../../../src/actors/journal/replay/prove-recording.ts';
import type {
  Gap,
  RecordedEntry,
  Recording,
} from '../../../src/actors/journal/replay/recording.ts';
import type { TaskView } from '../../../src/actors/journal/task-view.ts';
import { recordedTask, recordingOf, rehashed, sealed } from '../../support/recordings.ts';

describe('a recording', () => {
  let task: TaskView;
  let entries: readonly RecordedEntry[] = [];
  beforeEach(async () => {
    if (entries.length === 0) ({ task, entries } = await recordedTask());
  });

  /** With other items, under the head of the whole journal. */
  const withItems = (items: Recording['items']): Recording =>
    sealed({ ...recordingOf(task, entries), items });
  const problemOf = (recording: Recording) => proveRecording(recording).problem;
  const at = (index: number): RecordedEntry => entries.at(index) as RecordedEntry;
  const without = (index: number) => entries.filter((entry) => entry !== at(index));

  test('that nobody changed is proven, by its hashes and by the machines', () => {
    expect(entries.length).toBeGreaterThan(20);
    expect(proveRecording(recordingOf(task, entries))).toEqual({
      ...{ entries: entries.length, leftOut: 0, withoutHash: 0, isFolded: true, problem: null },
    });
  });

  test('without its first, a middle or its last entry says where it was cut', () => {
    expect(problemOf(withItems(without(0)))).toBe(
      `entry ${at(1).seq} is the first one in the file, but not in the journal: entries were cut off at the beginning`,
    );
    expect(problemOf(withItems(without(9)))).toBe(
      `entry ${at(10).seq} does not follow the entry before it: entry 10 of the task is missing`,
    );
    expect(problemOf(withItems(without(-1)))).toBe(
      `entry ${at(-2).seq} is the last one in the file, and ${at(-1).seq} was when it was exported: entries were cut off at the end`,
    );
    expect(problemOf(withItems([]))).toContain('entries were cut off at the end');
  });

  test.each([
    ['status', { status: 'cancelled' }],
    ['result', { result: 'all tests pass' }],
    ['attempt', { attempt: 2 }],
    ['error', { error: { code: 'internal', message: 'made up' } }],
  ] as const)(
    'with another %s of the task than the journal has is not proven, also when it is sealed anew',
    (field, changed) => {
      const other = { ...task, ...changed } as TaskView;

      expect(problemOf(recordingOf(other, entries))).toBe(
        `the ${field} of the task is not what its last entries say: it was changed`,
      );
    },
  );

  test('of a task that the tracker has since reopened or renamed is proven', () => {
    for (const changed of [{ status: 'queued' }, { title: 'Another', labels: ['ui'] }])
      expect(problemOf(recordingOf({ ...task, ...changed } as TaskView, entries))).toBeNull();
  });

  test('with a changed end, and its own words about that, is not sealed', () => {
    const shorter = without(-1);
    const { head } = recordingOf(task, shorter);
    const { seal } = recordingOf(task, entries);
    const cut: Recording = { ...recordingOf(task, shorter), head, seal };

    expect(problemOf(cut)).toContain(
      'the task, its changes or the time of the export were changed',
    );
  });

  const texts = ['data', 'cause', 'type', 'task_id', 'previous', 'hash'] as const;
  const numbers = ['seq', 'task_seq', 'attempt', 'at', 'base'] as const;

  test('with any edit of any entry names the entry', () => {
    const edit = fc.record({
      index: fc.nat({ max: entries.length - 1 }),
      field: fc.constantFrom(...texts, ...numbers),
      place: fc.nat({ max: 5_000 }),
      by: fc.integer({ min: 1, max: 9 }),
    });
    const edited = (entry: RecordedEntry, field: string, place: number, by: number) => {
      const before = entry[field as keyof RecordedEntry];
      if (typeof before === 'string') {
        const index = place % Math.max(1, before.length);
        const other = before[index] === `${by}` ? 'x' : `${by}`;
        return { ...entry, [field]: before.slice(0, index) + other + before.slice(index + 1) };
      }
      return { ...entry, [field]: typeof before === 'number' ? before + by : by };
    };
    fc.assert(
      fc.property(edit, ({ index, field, place, by }) => {
        const items = entries.map((entry, n) =>
          n === index ? edited(entry, field, place, by) : entry,
        );
        expect(problemOf(withItems(items))).toMatch(/^entry \d+ /);
      }),
      { numRuns: 500 },
    );
  });

  test('with entries left out, doubled or swapped is not proven', () => {
    const place = fc.nat({ max: entries.length - 1 });
    const change = fc.constantFrom('leave out', 'double', 'swap', 'move');
    fc.assert(
      fc.property(place, place, change, (one, other, how) => {
        fc.pre(one !== other);
        const items = [...entries];
        const [taken] = items.splice(one, how === 'double' ? 0 : 1);
        if (how === 'double') items.splice(other, 0, at(one));
        if (how === 'move' && taken !== undefined) items.splice(other, 0, taken);
        if (how === 'swap') {
          items.splice(one, 0, at(other));
          items[other] = at(one);
        }
        expect(problemOf(withItems(items))).toMatch(/^entry \d+ /);
      }),
      { numRuns: 300 },
    );
  });

  test('with a changed state and all hashes written anew is found by the machines', () => {
    const places = entries.flatMap(({ type, cause }, index) =>
      type === 'snapshot' && cause !== null ? [index] : [],
    );
    for (const place of places) {
      const changed = entries.map((entry, index) =>
        index === place
          ? { ...entry, data: JSON.stringify({ ...JSON.parse(entry.data), value: 'failed' }) }
          : entry,
      );
      expect(problemOf(recordingOf(task, rehashed(changed)))).toMatch(
        new RegExp(
          `^at ${at(place).seq} the (task|agent) comes to .*, which is not what was recorded`,
        ),
      );
    }
    const withoutOne = entries.filter((_, index) => index !== places[3]);
    expect(problemOf(recordingOf(task, rehashed(withoutOne)))).toContain('not what was recorded');
  });

  test('with an event that breaks a machine says that it cannot be replayed', () => {
    const broken = entries.map((entry) =>
      entry.cause === null
        ? entry
        : { ...entry, cause: entry.cause.replace(/"output":\{.*\},"actorId"/, '"actorId"') },
    );

    expect(problemOf(recordingOf(task, rehashed(broken)))).toMatch(
      /cannot be replayed|not what was recorded/,
    );
  });

  const gap = (from: number, to: number, more: Partial<Gap> = {}): Gap => ({
    ...{ why: 'size', entries: to - from, transitions: 0, bytes: 1 },
    ...{ through_seq: at(to - 1).seq, hash: at(to - 1).hash, ...more },
  });

  test('with a part left out proves the rest, and that nothing else is missing', () => {
    const logs = entries.findIndex(({ type }) => type === 'tool_output');
    const items = [...entries.slice(0, logs), gap(logs, logs + 1), ...entries.slice(logs + 1)];

    expect(proveRecording(withItems(items))).toMatchObject({
      ...{ leftOut: 1, isFolded: true, problem: null },
    });
    expect(problemOf(withItems(items.filter((_, n) => n !== logs + 1)))).toMatch(/does not follow/);
    expect(problemOf(withItems(items.toSpliced(logs, 1)))).toMatch(/does not follow/);
    const moved = items.toSpliced(logs, 1);
    moved.splice(2, 0, gap(logs, logs + 1));
    expect(problemOf(withItems(moved))).not.toBeNull();
  });

  test('without its beginning, which the server had removed, is not run through the machines', () => {
    const items = [gap(0, 9, { why: 'removed' }), ...entries.slice(9)];
    const recording = withItems(items);

    expect(proveRecording(recording)).toMatchObject({ isFolded: false, problem: null });
    expect(problemOf(sealed({ ...recording, items: items.slice(1) }))).toContain(
      'at the beginning',
    );
  });

  test('from version 2.1 has no hashes, and later entries have', () => {
    const none = entries.map((entry) => ({ ...entry, previous: null, hash: null }));
    const old = none.slice(0, 5);
    const mixed = [...old, ...rehashed(entries.slice(5), 6)];

    expect(proveRecording(recordingOf(task, mixed))).toMatchObject({
      withoutHash: 5,
      problem: null,
    });
    const stripped = [...old, ...entries.slice(5)];
    expect(problemOf(recordingOf(task, stripped))).toMatch(/does not follow/);
    expect(problemOf(recordingOf(task, [...mixed.slice(0, 9), ...none.slice(9)]))).toMatch(
      /was added/,
    );
  });

  test('with a changed task is not as it was sealed', () => {
    const recording = recordingOf(task, entries);

    expect(problemOf({ ...recording, task: { ...task, title: 'another' } })).toContain(
      'the task, its changes or the time of the export were changed',
    );
  });
});
