import { type Frame, textOf } from '../data/frame.ts';
import { createFold } from './fold.ts';

export const lanes = ['queue', 'prepare', 'model', 'tool', 'you', 'verify', 'close'] as const;
export type Lane = (typeof lanes)[number];

/** Times in epoch ms. */
export interface Bar {
  readonly lane: Lane;
  readonly from: number;
  readonly to: number;
  readonly isFailed: boolean;
  readonly isRunning: boolean;
  readonly label: string;
  readonly attempt: number;
}

/** A stretch of time, and where it is drawn: 0 to 1. */
export interface Stretch {
  readonly from: number;
  readonly to: number;
  readonly at: number;
  readonly width: number;
  /** Nothing but waiting: drawn shorter than it was. */
  readonly isCompressed: boolean;
}

const laneOfPhase: Readonly<Record<string, Lane>> = {
  waiting_for_slot: 'queue',
  waiting_for_tracker: 'queue',
  backing_off: 'queue',
  preparing: 'prepare',
  awaiting_input: 'you',
  awaiting_approval: 'you',
  verifying: 'verify',
  closing: 'close',
  cancelling: 'close',
};

type Open = Omit<Bar, 'to' | 'isRunning'>;

const started = (frame: Frame): readonly [key: string, bar: Open] | null => {
  const { type, data, timestamp, attempt } = frame;
  const bar = (lane: Lane, label: string): Open => ({
    ...{ lane, label, attempt, from: Date.parse(timestamp), isFailed: false },
  });
  if (type === 'api_call_start') return ['model', bar('model', `${data['turn']}`)];
  if (type === 'tool_start') return [textOf(data['call_id']), bar('tool', textOf(data['tool']))];
  const lane = type === 'status_update' ? laneOfPhase[textOf(data['phase'])] : undefined;
  return lane === undefined ? null : ['phase', bar(lane, textOf(data['phase']))];
};

const endedKey = ({ type, data }: Frame): string | null => {
  if (type === 'api_call_complete') return 'model';
  if (type === 'tool_end') return textOf(data['call_id']);
  return type === 'status_update' ? 'phase' : null;
};

interface Draft {
  readonly open: Map<string, Open>;
  readonly ended: Bar[];
}

const endBar = ({ open, ended }: Draft, key: string, frame: Frame, isFailed: boolean): void => {
  const bar = open.get(key);
  if (bar === undefined) return;
  open.delete(key);
  const to = Math.max(Date.parse(frame.timestamp), bar.from);
  ended.push({ ...bar, to, isFailed, isRunning: false });
};

const addFrame = (draft: Draft, frame: Frame): void => {
  const key = endedKey(frame);
  if (key !== null) endBar(draft, key, frame, frame.data['ok'] === false);
  if (frame.type === 'stream_closed')
    for (const each of [...draft.open.keys()]) endBar(draft, each, frame, false);
  const begun = started(frame);
  if (begun !== null) draft.open.set(...begun);
};

/** The bars of all attempts; what has not ended ends at `now`. */
export const createBars = (): ((frames: readonly Frame[], now: number) => readonly Bar[]) => {
  const fold = createFold<Frame, Draft>(() => ({ open: new Map(), ended: [] }), addFrame);
  return (frames, now) => {
    const { open, ended } = fold(frames);
    return [...ended, ...[...open.values()].map((bar) => ({ ...bar, to: now, isRunning: true }))];
  };
};

const isWaiting = ({ lane }: Bar): boolean => lane === 'queue' || lane === 'you';
/** A wait longer than this part of the work is compressed to it. */
const waitPart = 0.12;
/** Where nothing was done but waiting. */
const idleMs = 1_000;

/** The stretches of the whole time, in order; idle ones are compressed. */
export const stretchesOf = (bars: readonly Bar[]): readonly Stretch[] => {
  const [first] = bars;
  if (first === undefined) return [];
  const busy = bars.filter((bar) => !isWaiting(bar)).sort((one, other) => one.from - other.from);
  const start = Math.min(...bars.map(({ from }) => from));
  const end = Math.max(...bars.map(({ to }) => to));
  const parts: { from: number; to: number; isIdle: boolean }[] = [];
  let at = start;
  for (const { from, to } of busy) {
    if (from > at) parts.push({ from: at, to: from, isIdle: true });
    if (to > at) parts.push({ from: Math.max(at, from), to, isIdle: false });
    at = Math.max(at, to);
  }
  if (end > at) parts.push({ from: at, to: end, isIdle: true });
  const work = parts.reduce((sum, { from, to, isIdle }) => sum + (isIdle ? 0 : to - from), 0);
  const longest = work === 0 ? idleMs : work * waitPart;
  const sized = parts.map(({ from, to, isIdle }) => {
    const isCompressed = isIdle && to - from > longest;
    return { from, to, isCompressed, size: isCompressed ? longest : to - from };
  });
  const total = Math.max(
    1,
    sized.reduce((sum, { size }) => sum + size, 0),
  );
  let drawn = 0;
  return sized.map(({ from, to, isCompressed, size }) => {
    const stretch = { from, to, at: drawn / total, width: size / total, isCompressed };
    drawn += size;
    return stretch;
  });
};

/** The position of a moment: 0 to 1. */
export const placeOf = (at: number, stretches: readonly Stretch[]): number => {
  const found = stretches.find(({ to }) => at <= to) ?? stretches.at(-1);
  if (found === undefined) return 0;
  const part = (at - found.from) / Math.max(1, found.to - found.from);
  return found.at + found.width * Math.min(1, Math.max(0, part));
};

/** The start of each attempt, in order. */
export const startsOf = (bars: readonly Bar[]): readonly Bar[] =>
  [...new Map(bars.toReversed().map((bar) => [bar.attempt, bar])).values()]
    .filter(({ attempt }) => attempt > 0)
    .sort((one, other) => one.attempt - other.attempt);

const markSeconds = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 21_600];
const marksAtMost = 8;

/** A moment of the work, and how long after the start of its attempt it is (ms). */
export interface Mark {
  readonly at: number;
  readonly after: number;
}

/** Marks of the time since the start of the attempt, at even distances; none in a long wait. */
export const marksOf = (
  starts: readonly Pick<Bar, 'from'>[],
  stretches: readonly Stretch[],
): readonly Mark[] => {
  const worked = stretches.filter(({ isCompressed }) => !isCompressed);
  const total = worked.reduce((sum, { from, to }) => sum + to - from, 0);
  const step = 1_000 * (markSeconds.find((each) => total / each <= marksAtMost * 1_000) ?? 86_400);
  return worked.flatMap(({ from, to }) => {
    const start = starts.findLast((each) => each.from <= from)?.from ?? from;
    const marks: Mark[] = [];
    for (let nth = Math.max(1, Math.ceil((from - start) / step)); start + nth * step < to; nth += 1)
      marks.push({ at: start + nth * step, after: nth * step });
    return marks;
  });
};
