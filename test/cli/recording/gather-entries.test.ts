import { expect, test } from 'vitest';
import { proveRecording } from '../../../src/actors/journal/replay/prove-recording.ts';
import type { RecordedEntry, RecordedItem } from '../../../src/actors/journal/replay/recording.ts';
import type { TaskView } from '../../../src/actors/journal/task-view.ts';
import { gatherEntries, type ReadHistory } from '../../../src/cli/recording/record-task.ts';
import { createRedactor } from '../../../src/cli/server/secrets/redact.ts';
import { recordedTask, recordingOf, rehashed, sealed } from '../../support/recordings.ts';

/** Pages of a journal, as the server gives them. */
const journalOf =
  (entries: readonly RecordedEntry[]): ReadHistory =>
  async ({ after_seq: after, limit }) => {
    const page = entries.filter(({ seq }) => seq > after).slice(0, limit);
    const last = page.at(-1);
    return { entries: page, ...(page.length === limit ? { next_after: last?.seq } : {}) };
  };

/** A journal with 300 outputs of 1 kB in the place of each output. */
const longJournal = async () => {
  const { task, entries } = await recordedTask();
  const output = { call_id: 'call', chunk: 'x'.repeat(1_000) };
  const long = entries.flatMap((entry) =>
    entry.type === 'tool_output'
      ? Array.from({ length: 300 }, () => ({ ...entry, data: JSON.stringify(output), cause: null }))
      : entry,
  );
  const numbers = new Map<number, number>();
  const numbered = long.map((entry, index) => {
    if (entry.type === 'snapshot') numbers.set(entry.seq, index + 1);
    const base = entry.base === null ? null : (numbers.get(entry.base) ?? null);
    return { ...entry, seq: index + 1, base };
  });
  return { task, entries: rehashed(numbered) };
};

const gather = (
  entries: readonly RecordedEntry[],
  bytesAtMost: number,
  secrets: readonly string[] = [],
) =>
  gatherEntries(journalOf(entries), 'bd-a', { redact: createRedactor(() => secrets), bytesAtMost });
const prove = (task: TaskView, gathered: Awaited<ReturnType<typeof gather>>) =>
  proveRecording(sealed({ ...recordingOf(task, []), ...gathered }));
const gapsIn = (items: readonly RecordedItem[]) => items.filter((item) => 'why' in item);

test('a journal that fits is taken whole', async () => {
  const { task, entries } = await longJournal();

  const gathered = await gather(entries, 10_000_000);

  expect(gathered.items).toEqual(entries);
  expect(prove(task, gathered)).toMatchObject({ problem: null, leftOut: 0, isFolded: true });
});

test('the oldest output of one that is too large is left out, and the rest is proven', async () => {
  const { task, entries } = await longJournal();
  const size = entries.reduce((sum, entry) => sum + JSON.stringify(entry).length, 0);

  const gathered = await gather(entries, Math.round(size / 2));

  const [gap, ...more] = gapsIn(gathered.items);
  expect(more.filter(({ why }) => why !== 'size')).toEqual([]);
  expect(gap).toMatchObject({ why: 'size', transitions: 0 });
  expect(JSON.stringify(gathered.items).length).toBeLessThan(size / 2 + 5_000);
  const kept = gathered.items.flatMap((item) => ('why' in item ? [] : item.seq));
  expect(entries.filter(({ type, seq }) => type !== 'tool_output' && !kept.includes(seq))).toEqual(
    [],
  );
  const { leftOut, ...proof } = prove(task, gathered);
  expect(proof).toMatchObject({ problem: null, isFolded: true });
  expect(leftOut).toBeGreaterThan(100);
  const cut = gathered.items.filter((item) => item !== gap);
  expect(prove(task, { ...gathered, items: cut }).problem).not.toBeNull();
});

test('when the snapshots alone are too large, the newest entries stay, with what they refer to', async () => {
  const { task, entries } = await longJournal();

  const gathered = await gather(entries, 4_000);

  const kept = gathered.items.flatMap((item) => ('why' in item ? [] : item));
  const seqs = new Set(kept.map(({ seq }) => seq));
  expect(kept.filter(({ base }) => base !== null && !seqs.has(base))).toEqual([]);
  expect(kept.at(-1)).toEqual(entries.at(-1));
  expect(prove(task, gathered)).toMatchObject({ problem: null, isFolded: false });
});

test('an entry with a secret that was none when it was written is left out', async () => {
  const { task, entries } = await recordedTask();
  const secret = 'a-secret-of-today';
  const leaky = rehashed(
    entries.map((entry) =>
      entry.type === 'tool_output' ? { ...entry, data: `{"chunk":"${secret}"}` } : entry,
    ),
  );
  // As a server sends it, which replaces its secrets.
  const sent = JSON.parse(JSON.stringify(leaky).replaceAll(secret, '[secret]'));

  for (const [journal, secrets] of [
    [leaky, [secret]],
    [sent, []],
  ] as const) {
    const gathered = await gather(journal, 10_000_000, secrets);
    expect(JSON.stringify(gathered)).not.toContain(secret);
    expect(gapsIn(gathered.items)).toMatchObject([{ why: 'secret', entries: 1 }]);
    expect(prove(task, gathered)).toMatchObject({ problem: null, leftOut: 1, isFolded: true });
  }
});

test('an entry that was changed in the journal is not hidden', async () => {
  const { task, entries } = await recordedTask();
  const changed = entries.map((entry, index) => (index === 7 ? { ...entry, at: 1 } : entry));

  const gathered = await gather(changed, 10_000_000);

  expect(prove(task, gathered).problem).toBe(
    `entry ${entries[7]?.seq} was changed after it was written`,
  );
});
