import { signal } from '@preact/signals';
import type { UsageReport } from '../../src/actors/engine/queries/task-usage.ts';
import { request } from './call.ts';
import { call } from './source.ts';

export type Usage = UsageReport;

export interface Check {
  readonly status: string;
  readonly detail: string;
  /** Of the supervisor and the queue of merges: the state of the chart. */
  readonly state?: string;
}
export interface Health {
  readonly status: string;
  readonly version: string;
  readonly uptime_seconds: number;
  readonly checks: Readonly<Record<string, Check>>;
}
interface Discovery {
  readonly capabilities: { readonly max_concurrent: number };
  readonly agents: readonly { readonly role: string; readonly description: string }[];
}

/** The number of agents that run at once; null before it is known. */
export const slots = signal<number | null>(null);
export const roles = signal<Discovery['agents']>([]);
/** In USD; null where no price is known. */
export const spentToday = signal<number | null>(null);
export const usage = signal<Usage | null>(null);
export const health = signal<Health | null>(null);

export const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10);

export const readUsage = async (): Promise<void> => {
  const found = await call<Usage>('usage', { since: dayOf(Date.now() - 6 * 86_400_000) });
  usage.value = found;
  const today = found.days.filter(
    ({ day, cost_usd }) => day === dayOf(Date.now()) && cost_usd !== undefined,
  );
  spentToday.value =
    found.total.cost_usd === undefined
      ? null
      : today.reduce((sum, { cost_usd }) => sum + (cost_usd ?? 0), 0);
};

export const readHealth = async (): Promise<void> => {
  const found = (await (await request('health')).json()) as Partial<Health>;
  // An error of the server has no checks.
  health.value = found.checks === undefined ? null : (found as Health);
};

export const readDiscovery = async (): Promise<void> => {
  const found = await call<Discovery>('discovery');
  slots.value = found.capabilities.max_concurrent;
  roles.value = found.agents;
};

const readEveryMs = 30_000;

/** Reads what the top bar shows, and the money and the health again from time to time. */
export const followTotals = (): (() => void) => {
  const read = (): void => {
    void readUsage().catch(() => null);
    void readHealth().catch(() => null);
  };
  void readDiscovery().catch(() => null);
  read();
  const timer = setInterval(read, readEveryMs);
  return () => clearInterval(timer);
};
