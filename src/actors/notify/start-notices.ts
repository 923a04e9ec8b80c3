import { plural } from '../../machines/plural.ts';
import type { EntryReads } from '../store/port.ts';
import { type DeliveryOptions, startDelivery } from './deliver-webhook.ts';
import type { NoticeProject } from './notice.ts';
import type { Webhook } from './post-webhook.ts';
import { createNoticeReader } from './read-notice.ts';
import { type HookOptions, startHooks } from './run-hooks.ts';

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
