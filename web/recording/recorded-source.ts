import { signal } from '@preact/signals';
import type { Gap, RecordedEntry, Recording } from '../../src/actors/journal/recording.ts';
import { filledFrom } from '../../src/actors/store/snapshot-data.ts';
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

const gapText = ({ why, entries, bytes, through_seq: last }: Gap): string => {
  if (why === 'removed')
    return `The entries up to ${last} had been removed from the journal before the export.`;
  const left = `${numbered(entries, 'entry', 'entries')} up to ${last} ${entries === 1 ? 'is' : 'are'} left out`;
  return why === 'secret'
    ? `${left}: a secret is in it.`
    : `${left}, ${(bytes / 1e6).toFixed(1)} MB: the file would be too large.`;
};

const gapsShown = 5;

/** What the file does not hold, a sentence for each part; null when it holds everything. */
export const missingIn = ({ items, task }: Recording): string | null => {
  const gaps = items.filter(isGap);
  if (items.length === 0 && task.history_removed !== undefined)
    return 'The journal had been removed before the export.';
  if (gaps.length === 0) return null;
  const more = gaps.length > gapsShown ? [`And ${gaps.length - gapsShown} more parts.`] : [];
  return [...gaps.slice(0, gapsShown).map(gapText), ...more].join(' ');
};

/** Answers from an exported file. */
export const recordedSource = (recording: Recording): Source => {
  const history: TaskHistory = {
    frames: signal(framesOf(recording.items)),
    missing: signal(missingIn(recording)),
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
