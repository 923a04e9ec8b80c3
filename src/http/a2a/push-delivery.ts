import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { postOnce, signedHeaders } from '../../actors/notify/post-webhook.ts';
import type { PushConfig, PushConfigs } from '../../actors/store/rows/push-configs.ts';
import { eventsOf, type FollowPorts } from './follow-run.ts';
import type { StreamResponse } from './protocol.ts';
import type { ReadRun } from './read-run.ts';
import { eventTo03 } from './version-03.ts';

export interface PushPorts {
  readonly configs: PushConfigs;
  readonly follows: FollowPorts;
  /** Null when the run is not there any more. */
  readonly readAt: (config: PushConfig) => Promise<ReadRun | null>;
  readonly redact: (text: string) => string;
  readonly now: () => number;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
  readonly times?: {
    readonly requestMs: number;
    readonly firstPauseMs: number;
    /** Between tries to read or write the store. */
    readonly storePauseMs: number;
  };
}

/** Tells receivers of the changes of runs, each in their order; after a restart it goes on. */
export interface PushDelivery {
  start(config: PushConfig): void;
  stop(config: Pick<PushConfig, 'run' | 'id'>): void;
  startAll(): Promise<void>;
  /** Cuts what is underway; it is sent again by the next server. */
  stopAll(): Promise<void>;
}

const usualPushTimes = { requestMs: 10_000, firstPauseMs: 1_000, storePauseMs: 5_000 };
const triesAtMost = 6;
const longestPushPauseMs = 60_000;
/** A receiver that gets none of so many events in a row is told nothing more. */
const lostAtMost = 5;

const eventBody = (event: StreamResponse, { version }: PushConfig): string =>
  JSON.stringify(version === '0.3' ? eventTo03(event, false) : event);

/** Equal each time an event is sent. `told` and `since`: its place after the last one that is saved. */
const deliveryId = (run: string, told: number, since: number, body: string): string =>
  `msg_${createHash('sha256')
    .update(JSON.stringify([run, told, since, body]))
    .digest('base64url')}`;

interface PushMessage {
  readonly id: string;
  readonly body: string;
}

const headersOf = (
  { token, scheme, credentials, version }: PushConfig,
  { id, body }: PushMessage,
  at: number,
): Readonly<Record<string, string>> => ({
  'content-type': version === '0.3' ? 'application/json' : 'application/a2a+json',
  ...(token === null
    ? {}
    : { 'x-a2a-notification-token': token, ...signedHeaders(id, body, token, at) }),
  ...(scheme === null ? {} : { authorization: `${scheme} ${credentials ?? ''}`.trim() }),
});

/** Posts one event to a receiver until it is taken or given up. */
const createPushSender = ({ now, log, times = usualPushTimes }: PushPorts) => {
  const { requestMs, firstPauseMs } = times;
  const pause = (ms: number, signal: AbortSignal): Promise<void> =>
    delay(ms, undefined, { ref: false, signal }).catch(() => {});

  /** @returns whether the receiver took it */
  const send = async (
    config: PushConfig,
    message: PushMessage,
    stopping: AbortSignal,
  ): Promise<boolean> => {
    const url = new URL(config.url);
    const { body } = message;
    for (let tries = 1; !stopping.aborted; tries += 1) {
      const headers = headersOf(config, message, now());
      const posted = await postOnce(
        { url, allowPrivate: 'loopback', headers, body },
        { stopping, limitMs: requestMs },
      );
      if (posted === 'sent') return true;
      if (!posted.mayRetry || tries >= triesAtMost) {
        const facts = { run: config.run, host: url.host, tries, problem: posted.problem };
        if (!stopping.aborted) log('gave up sending a push notification', facts);
        return false;
      }
      const ms = Math.min(firstPauseMs * 4 ** (tries - 1), longestPushPauseMs);
      await pause(ms * (0.5 + Math.random() / 2), stopping);
    }
    return false;
  };
  return { pause, send };
};

export const createPushDelivery = (ports: PushPorts): PushDelivery => {
  const { configs, follows, readAt, redact, log, times = usualPushTimes } = ports;
  const { pause, send } = createPushSender(ports);
  const running = new Map<
    string,
    { readonly stop: AbortController; readonly ended: Promise<void> }
  >();
  const keyOf = ({ run, id }: Pick<PushConfig, 'run' | 'id'>): string => JSON.stringify([run, id]);

  /** @returns whether the config has no more use */
  const follow = async (config: PushConfig, stopping: AbortSignal): Promise<boolean> => {
    const found = await readAt(config);
    if (found === null) return true;
    let lost = 0;
    let told = config.sent;
    let since = 0;
    for await (const { event, seq } of eventsOf(follows, found, stopping)) {
      const body = redact(eventBody(event, config));
      const id = deliveryId(config.run, told, since, body);
      const isTaken = await send(config, { id, body }, stopping);
      if (stopping.aborted) return false;
      lost = isTaken ? 0 : lost + 1;
      if (lost >= lostAtMost) return true;
      since += 1;
      if (seq === null) continue;
      await configs.setSent(config.run, config.id, seq);
      told = seq;
      since = 0;
    }
    return !stopping.aborted;
  };

  const run = async (config: PushConfig, stopping: AbortSignal): Promise<void> => {
    let current = config;
    while (!stopping.aborted) {
      try {
        if (await follow(current, stopping)) await configs.remove(config.run, config.id);
        return;
      } catch (error) {
        log('push notifications wait for the store', { run: config.run, error });
        await pause(times.storePauseMs, stopping);
        current = (await configs.ofRun(config.run)).find(({ id }) => id === config.id) ?? current;
      }
    }
  };

  const stop: PushDelivery['stop'] = (config) => running.get(keyOf(config))?.stop.abort();
  const start: PushDelivery['start'] = (config) => {
    stop(config);
    const key = keyOf(config);
    const own = new AbortController();
    const ended = run(config, own.signal)
      .catch((error: unknown) => log('push notifications ended', { run: config.run, error }))
      .finally(() => {
        if (running.get(key)?.stop === own) running.delete(key);
      });
    running.set(key, { stop: own, ended });
  };
  return {
    start,
    stop,
    startAll: async () => {
      for (const config of await configs.all()) start(config);
    },
    stopAll: async () => {
      const all = [...running.values()];
      for (const each of all) each.stop.abort();
      await Promise.all(all.map(({ ended }) => ended));
    },
  };
};
