import { signal } from '@preact/signals';
import type { Gap, RecordedEntry, Recording } from '../../src/actors/journal/replay/recording.ts';
import { filledFrom } from '../../src/actors/store/rows/snapshot-data.ts';
import type { Frame } from '../data/frame.ts';
import type { Source, TaskHistory } from '../data/source.ts';
import { numbered } from '../model/format.ts';

type Data = Frame['data'];
type Item = RecordedEntry | Gap;

const isGap = (item: Item): item is Gap => 'why' in item;
const taskIn = (data: Data): Data => (data['task'] ?? {}) as Data;

/** The frames of a journal; a shortened snapshot gets its fields from the one that it names. */
export const framesOf = (items: readonly Item[]): readonly Frame[] => {
  const whole = new Map<number, Data>();
  return items.flatMap((item) => {
    if (isGap(item)) return [];
    const { seq, task_id, attempt, type, at, base } = item;
    const given = JSON.parse(item.data) as Data;
    if (type === 'snapshot' && base === null) whole.set(seq, taskIn(given));
    const from = base === null ? undefined : whole.get(base);
    const data = from === undefined ? given : { ...given, task: filledFrom(from, taskIn(given)) };
    return { seq, task_id, attempt, type, timestamp: new Date(at).toISOString(), data };
  });
};

const countIn = (gaps: readonly Gap[]): string =>
  numbered(
    gaps.reduce((sum, { entries }) => sum + entries, 0),
    'entry',
    'entries',
  );

const texts: Readonly<Record<Gap['why'], (gaps: readonly Gap[]) => string>> = {
  removed: (gaps) =>
    `The entries up to ${gaps.at(-1)?.through_seq} had been removed from the journal before the export.`,
  size: (gaps) => {
    const bytes = gaps.reduce((sum, gap) => sum + gap.bytes, 0);
    return `${countIn(gaps)} (${(bytes / 1e6).toFixed(1)} MB) left out: the file would be too large.`;
  },
  secret: (gaps) => `${countIn(gaps)} left out: a secret would be in the file.`,
};

/** What the file does not hold, a sentence for each reason; null when it holds everything. */
export const missingIn = ({ items, task }: Recording): string | null => {
  if (items.length === 0 && task.history_removed !== undefined)
    return 'The journal had been removed before the export.';
  const gaps = items.filter(isGap);
  const reasons = [...new Set(gaps.map(({ why }) => why))];
  const said = reasons.map((reason) => texts[reason](gaps.filter(({ why }) => why === reason)));
  return said.length === 0 ? null : said.join(' ');
};

/** Answers from an exported file. */
export const recordedSource = (recording: Recording): Source => {
  const history: TaskHistory = {
    frames: signal(framesOf(recording.items)),
    // The shell says it in every view.
    missing: signal(null),
    isRead: signal(true),
    close: () => {},
  };
  const answers: Readonly<Record<string, unknown>> = {
    status: recording.task,
    diff: recording.changes,
  };
  return {
    isRecorded: true,
    openHistory: () => history,
    call: async (method) => {
      const answer = answers[method] ?? null;
      if (answer === null) throw new Error('This recording does not hold it.');
      return answer;
    },
  };
};
