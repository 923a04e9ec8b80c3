import { basename } from 'node:path';
import type { Hook } from '../../actors/notify/run-hooks.ts';
import type { Config } from '../config/config-schema.ts';
import type { Assembled, ServerParts } from './assemble.ts';
import { shortHash } from './webhook-secrets.ts';

const hooksOf = ({ notify }: Config): readonly Hook[] =>
  notify.commands.flatMap(({ command: [program, ...args], events, timeout_seconds }) =>
    program === undefined
      ? []
      : [
          {
            argv: [program, ...args] as const,
            events: new Set(events),
            timeoutMs: timeout_seconds * 1_000,
          },
        ],
  );

export interface Notifications {
  /** Null where no webhook is configured. */
  check(): { readonly ok: boolean; readonly detail: string } | null;
  stop(): Promise<void>;
}

/** Loads the code for notifications only when somebody is told. Runs before any task does. */
export const startNotifications = async (
  { current, project, environment, logger, webhooks }: ServerParts,
  { system, store, ledger }: Assembled,
): Promise<Notifications> => {
  const hooks = hooksOf(current.loaded.config);
  if (webhooks.length === 0 && hooks.length === 0)
    return { check: () => null, stop: async () => {} };
  const [{ startNotices }, { createDeliveryCursors }] = await Promise.all([
    import('../../actors/notify/start-notices.ts'),
    import('../../actors/store/delivery-cursors.ts'),
  ]);
  return startNotices({
    webhooks,
    hooks,
    journal: system.journal,
    store,
    cursors: createDeliveryCursors(ledger.db),
    project: { key: shortHash(project.root), name: basename(project.root) },
    cwd: project.stateDir,
    environment,
    now: Date.now,
    log: logger.log,
  });
};
