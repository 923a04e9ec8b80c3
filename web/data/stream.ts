import { signal } from '@preact/signals';
import { createSseParser, type SseEvent } from '../../src/cli/client/sse-parser.ts';
import type { Frame } from './frame.ts';
import { authorization, signOutHere } from './session.ts';

export type Link =
  | { readonly state: 'connecting' }
  | { readonly state: 'live' }
  | { readonly state: 'lost'; readonly since: number }
  /** For a few seconds after a cut. */
  | { readonly state: 'back'; readonly caughtUp: number };

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

const framesIn = (events: readonly SseEvent[]): readonly Frame[] =>
  events.flatMap(({ id, event, data }) => {
    const frame = JSON.parse(data) as Frame;
    if (event === 'gap') lastId = Number(frame.data['resume_from']);
    if (id === null) return [];
    lastId = Math.max(lastId ?? 0, Number(id));
    return [frame];
  });

/** Counts what arrives after a cut and happened before it ended. */
const createCatchUp = (wasCut: boolean) => {
  const connectedAt = Date.now();
  let caughtUp = 0;
  const show = (): void => {
    link.value = wasCut ? { state: 'back', caughtUp } : { state: 'live' };
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

const readAll = async (
  body: ReadableStream<Uint8Array>,
  onBytes: () => void,
  onFrames: (frames: readonly Frame[]) => void,
): Promise<void> => {
  const parse = createSseParser();
  const decoder = new TextDecoder();
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    onBytes();
    const frames = framesIn(parse(decoder.decode(value, { stream: true })));
    if (frames.length > 0) onFrames(frames);
  }
};

/** One connection, until it ends. @returns whether it was opened */
const connectOnce = async (user: StreamUser, wasCut: boolean): Promise<boolean> => {
  const abort = new AbortController();
  let watch = setTimeout(() => abort.abort(), silenceMs);
  const onBytes = (): void => {
    clearTimeout(watch);
    watch = setTimeout(() => abort.abort(), silenceMs);
  };
  let catchUp: ReturnType<typeof createCatchUp> | null = null;
  try {
    const resume = lastId === null ? {} : { 'last-event-id': `${lastId}` };
    const response = await fetch('/stream', {
      headers: { ...authorization(), ...resume },
      signal: abort.signal,
    });
    if (response.status === 401) signOutHere('Your session has ended.');
    // The server has another journal than the one this page has read.
    if (response.status === 400) lastId = null;
    if (!response.ok || response.body === null) return false;
    if (lastId === null) await user.onFresh();
    catchUp = createCatchUp(wasCut);
    const counted = catchUp;
    await readAll(response.body, onBytes, (frames) => {
      counted.count(frames);
      user.onFrames(frames);
    });
    return true;
  } catch {
    return catchUp !== null;
  } finally {
    clearTimeout(watch);
    catchUp?.end();
    abort.abort();
  }
};

/** Follows the stream of every task while `wanted`; a cut costs nothing but time. */
export const followStream = async (user: StreamUser, wanted: () => boolean): Promise<void> => {
  let tries = 0;
  let since: number | null = null;
  while (wanted()) {
    const opened = await connectOnce(user, since !== null);
    if (!wanted()) return;
    if (opened) tries = 0;
    if (opened || since === null) since = Date.now();
    link.value = { state: 'lost', since };
    await pause(pausesMs[Math.min(tries, pausesMs.length - 1)] ?? 0);
    tries += 1;
  }
};
