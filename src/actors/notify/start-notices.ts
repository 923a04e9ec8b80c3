import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '../../machines/message-of.ts';
import { dayMs } from '../../machines/milliseconds.ts';
import { plural } from '../../machines/plural.ts';
import type { Journal } from '../journal/journal.ts';
import { shownIn } from '../journal/transition-frames.ts';
import { type CommandResult, runCommand } from '../process/run-command.ts';
import type { Entry, EntryReads } from '../store/port.ts';
import type { DeliveryCursors } from '../store/rows/delivery-cursors.ts';
import {
  isSameNeed,
  type Notice,
  type NoticeProject,
  type NoticeType,
  noticeOf,
  noticeTypeOf,
  taskOfEntry,
} from './notice.ts';
import { postWebhook, type Webhook } from './post-webhook.ts';

const entriesOfOneAtMost = 1_000;

/** The entry of a pull request before this one, with which it is compared. */
const entryBefore = async (
  store: Pick<EntryReads, 'read'>,
  { taskId, seq }: Entry,
): Promise<Entry | null> => {
  let before: Entry | null = null;
  for (let after = 0; ; ) {
    const page = await store.read({ taskId, after, limit: entriesOfOneAtMost });
    before = page.findLast((entry) => entry.seq < seq && entry.type === 'pullRequest') ?? before;
    after = page.at(-1)?.seq ?? seq;
    if (after >= seq || page.length < entriesOfOneAtMost) return before;
  }
};

/**
 * Makes the notice of an entry, with the title and the cost from the task's latest view. Null when it
 * says again what the entry before it said.
 */
export const createNoticeReader =
  (store: Pick<EntryReads, 'latest' | 'read'>, project: NoticeProject) =>
  async (type: NoticeType, entry: Entry): Promise<Notice | null> => {
    const before = type === 'pull_request_needs_you' ? await entryBefore(store, entry) : null;
    if (before !== null && isSameNeed(before, entry)) return null;
    const snapshot = await store.latest(taskOfEntry(entry), 'snapshot');
    return noticeOf(type, entry, snapshot === null ? null : shownIn(snapshot.data), project);
  };
type ReadNotice = ReturnType<typeof createNoticeReader>;

export interface Hook {
  readonly argv: readonly [string, ...string[]];
  readonly events: ReadonlySet<NoticeType>;
  readonly timeoutMs: number;
}

interface HookOptions {
  readonly hooks: readonly Hook[];
  readonly journal: Pick<Journal, 'onCommit'>;
  readonly readNotice: ReadNotice;
  readonly cwd: string;
  /** The whole environment of a hook. */
  readonly environment: Readonly<Record<string, string>>;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

const hooksAtOnce = 4;
const hooksWaitingAtMost = 200;
const hookOutputBytes = 1_000;

interface HookRun {
  readonly hook: Hook;
  readonly type: NoticeType;
  readonly entry: Entry;
}

const callsFor =
  (hooks: readonly Hook[]) =>
  (entry: Entry): readonly HookRun[] => {
    const type = noticeTypeOf(entry);
    if (type === null) return [];
    return hooks.filter(({ events }) => events.has(type)).map((hook) => ({ hook, type, entry }));
  };

const hookProblem = ({ exitCode, timedOut }: CommandResult, { timeoutMs }: Hook): string | null => {
  if (timedOut) return `it was ended after ${timeoutMs / 1_000} s`;
  if (exitCode === null) return 'it could not be started';
  return exitCode === 0 ? null : `it ended with exit code ${exitCode}`;
};

/**
 * Runs the user's programs for events of tasks, four at once. An event is given once; a restart
 * does not repeat it. No task waits for a hook.
 */
export const startHooks = (options: HookOptions): { stop(): Promise<void> } => {
  const { hooks, journal, readNotice, cwd, environment, log } = options;
  const stopping = new AbortController();
  const running = new Set<Promise<void>>();
  let waiting: readonly HookRun[] = [];

  const run = async ({ hook, type, entry }: HookRun): Promise<void> => {
    const about = { task_id: entry.taskId, attempt: entry.attempt, event: type };
    const program = hook.argv[0];
    try {
      const notice = await readNotice(type, entry);
      if (notice === null) return;
      const result = await runCommand({
        argv: hook.argv,
        cwd,
        env: environment,
        stdin: Buffer.from(`${JSON.stringify(notice)}\n`),
        timeoutMs: hook.timeoutMs,
        signal: stopping.signal,
        headBytes: hookOutputBytes,
        tailBytes: hookOutputBytes,
      });
      const problem = result.aborted ? null : hookProblem(result, hook);
      if (problem !== null)
        log('a command for an event failed', { ...about, program, problem, output: result.output });
    } catch (error) {
      log('a command for an event failed', { ...about, program, error });
    }
  };
  const fill = (): void => {
    while (running.size < hooksAtOnce && waiting.length > 0 && !stopping.signal.aborted) {
      const [next, ...rest] = waiting;
      if (next === undefined) return;
      waiting = rest;
      const one = run(next).finally(() => {
        running.delete(one);
        fill();
      });
      running.add(one);
    }
  };
  const callsOf = callsFor(hooks);
  const leave = journal.onCommit((entries) => {
    const calls = entries.flatMap(callsOf);
    if (calls.length === 0) return;
    const all = [...waiting, ...calls];
    waiting = all.slice(0, hooksWaitingAtMost);
    for (const { type, entry, hook } of all.slice(hooksWaitingAtMost))
      log('skipped a command for an event: too many are waiting', {
        task_id: entry.taskId,
        attempt: entry.attempt,
        event: type,
        program: hook.argv[0],
      });
    fill();
  });
  return {
    stop: async () => {
      leave();
      stopping.abort();
      await Promise.all(running);
    },
  };
};

interface DeliveryOptions {
  readonly webhook: Webhook;
  readonly journal: Pick<Journal, 'onCommit'>;
  readonly store: Pick<EntryReads, 'read' | 'lastSeq'>;
  readonly cursors: DeliveryCursors;
  readonly readNotice: ReadNotice;
  readonly now: () => number;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
  readonly times?: {
    readonly requestMs: number;
    /** The pause after the first failed try; each next one is four times as long. */
    readonly firstPauseMs: number;
  };
}

/**
 * Sends the events of the journal to one webhook, in their order and one at a time. Its place in
 * the journal is saved behind each event, so a restart sends what was not sent.
 */
interface Delivery {
  problem(): string | null;
  /** Gives a request that is underway 2 s. */
  stop(): Promise<void>;
}

const entriesWaitingAtMost = 256;
const entriesPerScan = 200;
const deliveryTries = 8;
const ageAtMostMs = dayMs;
const longestDeliveryPauseMs = 15 * 60_000;
const usualTimes = { requestMs: 10_000, firstPauseMs: 2_000 };
const lastDeliveriesMs = 2_000;
const savedEvery = 1_000;

/** Half of it is chance, so that receivers that come back are not called all at once. */
const pauseBeforeRetry = (tries: number, firstPauseMs: number): number =>
  Math.min(firstPauseMs * 4 ** (tries - 1), longestDeliveryPauseMs) * (0.5 + Math.random() / 2);

/** The next entries of the journal that a webhook wants; the journal keeps what is too much. */
const createWaiting = ({ events }: Webhook, from: number) => {
  let entries: readonly Entry[] = [];
  let scanned = from;
  const isWanted = (entry: Entry): boolean => {
    const type = noticeTypeOf(entry);
    return type !== null && events.has(type);
  };
  return {
    /** The seq through which the journal was looked at. */
    scanned: () => scanned,
    first: () => entries[0],
    count: () => entries.length,
    dropFirst: () => {
      entries = entries.slice(1);
    },
    /** Takes what follows `after`; nothing when that is not where it stands, or it is too much. */
    take: (after: number, following: readonly Entry[], through: number): void => {
      const wanted = following.filter(isWanted);
      if (after !== scanned || entries.length + wanted.length > entriesWaitingAtMost) return;
      entries = [...entries, ...wanted];
      scanned = through;
    },
  };
};

/** Sends one event after another to a webhook, each until it is taken or given up. */
const createSender = ({
  webhook,
  readNotice,
  now,
  log,
  times: { requestMs, firstPauseMs } = usualTimes,
}: DeliveryOptions) => {
  const { host } = webhook.url;
  const stopping = new AbortController();
  const cut = new AbortController();
  let problem: string | null = null;

  const pause = (ms: number): Promise<void> =>
    delay(ms, undefined, { ref: false, signal: stopping.signal }).catch(() => {});

  const giveUp = (entry: Entry, tries: number): void => {
    const { taskId: task_id, attempt } = entry;
    const facts = { task_id, attempt, event: noticeTypeOf(entry), host, tries, problem };
    log('gave up sending this event to a webhook', facts);
  };
  const isHopeless = (entry: Entry, tries: number): boolean =>
    tries >= deliveryTries || now() - entry.at > ageAtMostMs;
  /** @returns false when the server stops before it is sent or given up */
  const send = async (entry: Entry): Promise<boolean> => {
    const notice = await readNotice(noticeTypeOf(entry) ?? 'completed', entry);
    if (notice === null) return true;
    for (let tries = 1; !stopping.signal.aborted; tries += 1) {
      const limits = { stopping: cut.signal, limitMs: requestMs };
      const posted = await postWebhook(webhook, notice, now(), limits);
      problem = posted === 'sent' ? null : posted.problem;
      if (posted === 'sent') return true;
      if (stopping.signal.aborted) return false;
      if (!posted.mayRetry || isHopeless(entry, tries)) {
        giveUp(entry, tries);
        return true;
      }
      await pause(pauseBeforeRetry(tries, firstPauseMs));
    }
    return false;
  };

  return {
    send,
    problem: () => problem,
    isStopping: () => stopping.signal.aborted,
    /** The store failed: the next event waits. */
    waitFor: async (error: unknown): Promise<void> => {
      if (problem === null) log('a webhook waits for the store', { host, error });
      problem = messageOf(error);
      await pause(pauseBeforeRetry(3, firstPauseMs));
    },
    /** Gives a request that is underway 2 s; `work` ends with it. */
    stop: async (work: Promise<void> | null): Promise<void> => {
      stopping.abort();
      const timer = setTimeout(() => cut.abort(), lastDeliveriesMs);
      await work;
      clearTimeout(timer);
    },
  };
};

const startDelivery = async (options: DeliveryOptions): Promise<Delivery> => {
  const { webhook, journal, store, cursors } = options;
  const { host } = webhook.url;
  const sender = createSender(options);
  let lastSeen = await store.lastSeq();
  let saved = (await cursors.read(webhook.key)) ?? lastSeen;
  let running: Promise<void> | null = null;
  const waiting = createWaiting(webhook, saved);

  const save = async (seq: number): Promise<void> => {
    await cursors.save(webhook.key, seq);
    saved = seq;
  };
  const step = async (): Promise<void> => {
    const next = waiting.first();
    if (next === undefined) {
      const after = waiting.scanned();
      const page = await store.read({ after, limit: entriesPerScan });
      // The end of the journal may have been removed because it was old.
      waiting.take(after, page, page.at(-1)?.seq ?? lastSeen);
    } else if (await sender.send(next)) {
      waiting.dropFirst();
      await save(waiting.count() === 0 ? waiting.scanned() : next.seq);
    }
  };
  const isBehind = (): boolean => waiting.count() > 0 || waiting.scanned() < lastSeen;
  const run = async (): Promise<void> => {
    while (isBehind() && !sender.isStopping()) {
      try {
        await step();
      } catch (error) {
        await sender.waitFor(error);
      }
    }
    running = null;
  };
  const go = (): void => {
    if (!sender.isStopping() && isBehind()) running ??= run();
  };
  const saveNowAndThen = (): void => {
    if (isBehind() || waiting.scanned() - saved < savedEvery) return;
    save(waiting.scanned()).catch(() => {});
  };
  const leave = journal.onCommit((entries) => {
    const [first, last] = [entries[0], entries.at(-1)];
    if (first === undefined || last === undefined) return;
    lastSeen = last.seq;
    waiting.take(first.seq - 1, entries, last.seq);
    go();
    saveNowAndThen();
  });
  await save(saved);
  go();

  return {
    problem: () => {
      const problem = sender.problem();
      const wait = waiting.count() === 0 ? '' : `; ${waiting.count()} or more events wait`;
      return problem && `${host}: ${problem}${wait}`;
    },
    stop: async () => {
      leave();
      await sender.stop(running);
      if (waiting.count() === 0 && waiting.scanned() > saved)
        await save(waiting.scanned()).catch(() => {});
    },
  };
};

export interface NoticeOptions
  extends Omit<DeliveryOptions, 'webhook' | 'store' | 'readNotice'>,
    Omit<HookOptions, 'readNotice'> {
  readonly webhooks: readonly Webhook[];
  readonly store: Pick<EntryReads, 'read' | 'latest' | 'lastSeq'>;
  readonly project: NoticeProject;
}

/** Tells webhooks and commands of the events of tasks. */
export const startNotices = async (options: NoticeOptions) => {
  const { webhooks, hooks, cursors, store, project } = options;
  const readNotice = createNoticeReader(store, project);
  await cursors.keepOnly(webhooks.map(({ key }) => key));
  const deliveries = await Promise.all(
    webhooks.map((webhook) => startDelivery({ ...options, webhook, readNotice })),
  );
  const running = hooks.length === 0 ? null : startHooks({ ...options, readNotice });
  return {
    /** Null without a webhook. */
    check: () => {
      if (deliveries.length === 0) return null;
      const problems = deliveries.flatMap((one) => one.problem() ?? []);
      const detail =
        problems.length === 0
          ? `${plural(deliveries.length, 'webhook')} without a problem`
          : problems.join('; ');
      return { ok: problems.length === 0, detail };
    },
    stop: async (): Promise<void> => {
      await Promise.all(
        [...deliveries, ...(running === null ? [] : [running])].map((one) => one.stop()),
      );
    },
  };
};
