import { createHash } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { fromPromise } from 'xstate';
import {
  type Followed,
  type SourceContext,
  type SourceInput,
  type SourceSeen,
  type SourceSnapshot,
  sourceMachine,
} from '../../../machines/source/source-machine.ts';
import type { Forge } from '../../forge/port.ts';
import type { Store } from '../../store/port.ts';
import type { PublishSettings, SourceSettings } from '../attempts/settings.ts';
import { createHost, type Host, type HostPorts } from '../hosting/host.ts';
import { problemIn } from '../publishing/until-news.ts';
import { createEndIssues, type EndPorts } from './end-issues.ts';
import { type ForgeOf, itemsOf } from './import-issues.ts';
import type { HowToImport, Imported } from './import-tasks.ts';
import type { ImportItem } from './order-items.ts';
import type { SourceStates } from './source-states.ts';
import { createWriteBack, type WriteBackPorts } from './write-back.ts';

export interface SourcePorts extends HostPorts, Omit<EndPorts, 'log'> {
  readonly tracker: EndPorts['tracker'] & WriteBackPorts['tracker'];
  readonly store: HostPorts['store'] & Pick<Store, 'openHosted' | 'read' | 'lastSeq'>;
  readonly forgeOf: ForgeOf;
  readonly import: (items: readonly ImportItem[], how: HowToImport) => Promise<Imported>;
  readonly sources: () => readonly SourceSettings[];
  readonly pauseMs: () => PublishSettings['pauseMs'];
}

export interface Sources
  extends Pick<
    Host<SourceSnapshot, { readonly type: 'none' }, SourceInput>,
    'restore' | 'stop' | 'failing'
  > {
  /** Begins those of the configuration that nobody follows. */
  start(): Promise<void>;
  check(): Promise<SourceStates>;
}

type Source = Pick<SourceSettings, 'repository' | 'labels'>;

const digestOf = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 16);

/** The id of its actor, and of its history. */
const idOf = ({ repository, labels }: Source): string =>
  `source-${digestOf([repository, labels.toSorted()])}`;

/** `github: acme/shop` */
const repositoryOf = (forge: Forge): string => forge.name.replace(/^\w+: /, '');

/** What moved is looked at again soon. */
const isMoved = ({ made, changed, ended }: SourceSeen): boolean => made + changed + ended > 0;

const createLook = (ports: SourcePorts) => {
  const endIssues = createEndIssues(ports);
  const writeBack = createWriteBack(ports);
  /** Of the list that was carried out last, by source. */
  const last = new Map<string, string>();

  const takeIn = async (forge: Forge, context: SourceContext, signal: AbortSignal) => {
    const { id, labels } = context;
    const issues = await forge.issues(labels, signal);
    const digest = digestOf(issues);
    if (last.get(id) === digest) return { issues: issues.length, made: 0, changed: 0, ended: 0 };
    const { items } = await ports.import(itemsOf(issues), { dryRun: false, again: false });
    signal.throwIfAborted();
    const ended = await endIssues(forge, repositoryOf(forge), labels, issues, signal);
    last.set(id, digest);
    // Those that were there by a person's import, or before a crash, are as they should be.
    const count = (action: string): number => items.filter((each) => each.action === action).length;
    return { issues: issues.length, made: count('make'), changed: count('change'), ended };
  };

  return async (
    context: SourceContext,
    { repository, writeBack: how }: SourceSettings,
    signal: AbortSignal,
  ): Promise<{ readonly seen: SourceSeen; readonly isNews: boolean }> => {
    const forge = await ports.forgeOf(repository);
    const taken = await takeIn(forge, context, signal);
    const told =
      how === 'comment'
        ? await writeBack(forge, repositoryOf(forge), context.cursor, signal)
        : { cursor: await ports.store.lastSeq(), wrote: false };
    const seen = { ...taken, cursor: told.cursor, at: ports.now() };
    const isFirst = context.seen === null || context.problem !== null;
    return { seen, isNews: isFirst || told.wrote || isMoved(seen) };
  };
};

/** A person needs time to mend it. */
const personMs = 30_000;
const waitAtMostMs = 3_600_000;

const pauseOf = ({ problem }: SourceContext, pauseMs: number, now: number): number => {
  const least = problem?.needs === 'person' ? Math.max(pauseMs, personMs) : pauseMs;
  return Math.min(Math.max(least, (problem?.retryAt ?? 0) - now), waitAtMostMs);
};

const createFollow = (
  ports: SourcePorts,
): ReturnType<typeof fromPromise<Followed, SourceContext>> => {
  const look = createLook(ports);
  return fromPromise<Followed, SourceContext>(async ({ input, signal }) => {
    let [pauseMs, longestMs] = ports.pauseMs();
    let context = input;
    for (let waits = input.seen !== null || input.problem !== null; ; waits = true) {
      if (waits) {
        await setTimeout(pauseOf(context, pauseMs, ports.now()), undefined, { signal, ref: false });
        pauseMs = Math.min(pauseMs * 2, longestMs);
      }
      const wanted = ports.sources().find((each) => idOf(each) === input.id);
      if (wanted === undefined) return { over: true };
      try {
        const { seen, isNews } = await look(context, wanted, signal);
        if (isNews) return { done: seen };
        context = { ...context, cursor: seen.cursor };
      } catch (error) {
        signal.throwIfAborted();
        const problem = problemIn(error);
        const { needs, message } = context.problem ?? {};
        if (needs !== problem.needs || message !== problem.message) return { problem };
        context = { ...context, problem };
      }
    }
  });
};

/** Keeps tasks in step with the issues that `tracker.sources` names, each by one server. */
export const createSources = (ports: SourcePorts): Sources => {
  const { store, log } = ports;
  const chart = {
    kind: 'source',
    machine: sourceMachine.provide({ actors: { follow: createFollow(ports) } }),
    idOf: ({ id }: SourceContext) => id,
    shown: ({ context }: SourceSnapshot) => {
      const { repository, labels, seen, problem } = context;
      return { repository, labels, seen, problem };
    },
    open: () => store.openHosted('source'),
    ended: async () => {},
  } as const;
  const host = createHost<SourceSnapshot, { readonly type: 'none' }, SourceInput>(ports, chart);

  const begin = async ({ repository, labels }: SourceSettings, id: string): Promise<void> => {
    const state = await host.stateOf(id);
    if (state?.status === 'active') return;
    const cursor = await store.lastSeq();
    await host.begin({ id, repository, labels, cursor }, () => true);
  };
  return {
    start: async () => {
      for (const each of ports.sources())
        await begin(each, idOf(each)).catch((error: unknown) =>
          // Another server may have begun it at the same moment.
          log('a source of tasks is not followed yet', { repository: each.repository, error }),
        );
    },
    check: async () => {
      const all: SourceStates['sources'][number][] = [];
      for (const each of ports.sources()) {
        const state = await host.stateOf(idOf(each)).catch(() => null);
        const { seen = null, problem = null } = state?.context ?? {};
        all.push({
          ...(each.repository === null ? {} : { repository: each.repository }),
          labels: [...each.labels],
          state: typeof state?.value === 'string' ? state.value : 'not followed',
          ...(seen === null
            ? {}
            : { issues: seen.issues, seen_at: new Date(seen.at).toISOString() }),
          ...(problem === null ? {} : { problem: problem.message }),
        });
      }
      return { sources: all };
    },
    restore: host.restore,
    failing: host.failing,
    stop: host.stop,
  };
};
