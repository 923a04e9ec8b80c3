import { signal } from '@preact/signals';
import { createSseParser, type SseEvent } from '../../src/cli/client/sse-parser.ts';
import type { Frame } from './frame.ts';
import { ask, hasRunOn } from './session.ts';

export type Link =
  | { readonly state: 'connecting' }
  | { readonly state: 'live' }
  /** `isStopped`: the server said that it stops. */
  | { readonly state: 'lost'; readonly since: number; readonly isStopped: boolean }
  /** For a few seconds after a cut. `isReadAnew`: nothing to resume from. */
  | { readonly state: 'back'; readonly caughtUp: number; readonly isReadAnew: boolean };

export const link = signal<Link>({ state: 'connecting' });

export interface StreamUser {
  /** Connected without a frame to resume from: read everything again. */
  readonly onFresh: () => Promise<void>;
  readonly onFrames: (frames: readonly Frame[]) => void;
}

/** The server sends something every 15 seconds. */
const silenceMs = 40_000;
const pausesMs = [300, 1_000, 2_000, 4_000];
const backMs = 4_000;

let lastId: number | null = null;
let wake = (): void => {};

/** Ends the pause before the next try. */
export const reconnectNow = (): void => wake();

const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    wake = () => {
      clearTimeout(timer);
      resolve();
    };
  });

/** Nothing to resume from when entries after the last one were removed. */
const resumeAfterGap = (from: number): number | null =>
  lastId !== null && from > lastId ? null : from;

const framesIn = (events: readonly SseEvent[]): readonly Frame[] =>
  events.flatMap(({ id, event, data }) => {
    const frame = JSON.parse(data) as Frame;
    if (event === 'gap') lastId = resumeAfterGap(Number(frame.data['resume_from']));
    if (id === null) return [];
    lastId = Math.max(lastId ?? 0, Number(id));
    return [frame];
  });

/** Counts what arrives after a cut and happened before it ended. */
const createCatchUp = (wasCut: boolean, isReadAnew: boolean) => {
  const connectedAt = Date.now();
  let caughtUp = 0;
  const show = (): void => {
    link.value = wasCut ? { state: 'back', caughtUp, isReadAnew } : { state: 'live' };
  };
  const timer = setTimeout(() => {
    link.value = { state: 'live' };
  }, backMs);
  show();
  return {
    count: (frames: readonly Frame[]): void => {
      const missed = frames.filter(({ timestamp }) => Date.parse(timestamp) < connectedAt).length;
      caughtUp += missed;
      if (missed > 0 && link.value.state === 'back') show();
    },
    end: () => clearTimeout(timer),
  };
};

/** The last words of a server; a line of its own, which no frame can hold. */
const farewell = /(^|\n): the server stops/;
const tailLength = 200;

/** @returns whether the server said that it stops */
const readAll = async (
  body: ReadableStream<Uint8Array>,
  onBytes: () => void,
  onFrames: (frames: readonly Frame[]) => void,
): Promise<boolean> => {
  const parse = createSseParser();
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let tail = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return farewell.test(tail);
    onBytes();
    const text = decoder.decode(value, { stream: true });
    tail = (tail + text).slice(-tailLength);
    const frames = framesIn(parse(text));
    if (frames.length > 0) onFrames(frames);
  }
};

/** The end of a connection. */
type End = 'refused' | 'cut' | 'stopped';

/** One connection, until it ends. */
const connectOnce = async (user: StreamUser, wasCut: boolean): Promise<End> => {
  const abort = new AbortController();
  let watch = setTimeout(() => abort.abort(), silenceMs);
  const onBytes = (): void => {
    clearTimeout(watch);
    watch = setTimeout(() => abort.abort(), silenceMs);
  };
  let catchUp: ReturnType<typeof createCatchUp> | null = null;
  try {
    if (wasCut && !(await hasRunOn())) lastId = null;
    const headers: HeadersInit = lastId === null ? {} : { 'last-event-id': `${lastId}` };
    const response = await ask('stream', { headers, signal: abort.signal });
    // The server has another journal than the one this page has read.
    if (response.status === 400) lastId = null;
    if (!response.ok || response.body === null) return 'refused';
    const isFresh = lastId === null;
    if (isFresh) await user.onFresh();
    catchUp = createCatchUp(wasCut, isFresh);
    const counted = catchUp;
    const isStopped = await readAll(response.body, onBytes, (frames) => {
      counted.count(frames);
      user.onFrames(frames);
    });
    return isStopped ? 'stopped' : 'cut';
  } catch {
    return catchUp === null ? 'refused' : 'cut';
  } finally {
    clearTimeout(watch);
    catchUp?.end();
    abort.abort();
  }
};

/**
 * Follows the stream of every task while `wanted`; a cut costs nothing but time. Reads all at first:
 * what changed while no server ran has no frames.
 */
export const followStream = async (user: StreamUser, wanted: () => boolean): Promise<void> => {
  lastId = null;
  let tries = 0;
  let since: number | null = null;
  let isStopped = false;
  while (wanted()) {
    const end = await connectOnce(user, since !== null);
    if (!wanted()) return;
    if (end !== 'refused') {
      tries = 0;
      isStopped = end === 'stopped';
    }
    if (end !== 'refused' || since === null) since = Date.now();
    link.value = { state: 'lost', since, isStopped };
    await pause(pausesMs[Math.min(tries, pausesMs.length - 1)] ?? 0);
    tries += 1;
  }
};
