import type { Settings } from '../actors/engine/attempts/settings.ts';
import { roles } from '../machines/task.ts';

export interface Identity {
  readonly name: string;
  readonly version: string;
  readonly models: () => readonly string[];
}

const minutes = (ms: number): string => `${Math.round(ms / 60_000)}min`;

export const discoveryDocument = ({ name, version, models }: Identity, settings: Settings) => ({
  name,
  version,
  description:
    'Runs role-specific coding agents on tracked tasks, in the order of their dependencies.',
  capabilities: {
    streaming: true,
    parallel: true,
    max_concurrent: settings.cap,
    supported_models: models(),
  },
  agents: roles.map((role) => {
    const { description, tools, timeoutMs } = settings.roles[role];
    return { role, description, tools, timeout: minutes(timeoutMs) };
  }),
  endpoints: {
    discovery: { path: '/a2a/discovery', method: 'GET', description: 'agent capabilities' },
    execute: { path: '/a2a/execute', method: 'POST', description: 'execute a task (JSON-RPC 2.0)' },
    status: { path: '/a2a/status', method: 'POST', description: 'status of a task (JSON-RPC 2.0)' },
    stream: {
      path: '/stream/:task_id',
      method: 'GET',
      description: 'real-time progress of one task (SSE)',
    },
    health: { path: '/health', method: 'GET', description: 'liveness and features' },
    metrics: { path: '/metrics', method: 'GET', description: 'performance counters' },
  },
});
