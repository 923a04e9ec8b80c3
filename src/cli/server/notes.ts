import type { Settings } from '../../actors/engine/settings.ts';
import { effectiveCap } from '../config/config.ts';
import type { Config } from '../config/config-schema.ts';
import { isSafeUrl } from '../config/config-values.ts';

export const networkNotes = ({ roles }: Settings, { sandbox }: Config): readonly string[] => {
  const open = Object.values(roles).filter(({ network }) => network);
  if (sandbox.network || sandbox.mode === 'off' || open.length === 0) return [];
  return [
    `commands of ${open.map(({ role }) => role).join(', ')} reach the network (roles.<name>.network)`,
  ];
};

/** One line per unusual setting. */
export const notesOf = (config: Config): readonly string[] => {
  const { server, api, notify, telemetry } = config;
  const cap = effectiveCap(config);
  const proxy = api.mode === 'proxy' ? api.proxy.base_url : undefined;
  return [
    ...(cap < server.max_concurrent_agents
      ? [
          `server.worker_pool_size ${cap} caps max_concurrent_agents ${server.max_concurrent_agents}`,
        ]
      : []),
    ...(config.sandbox.allow_task_network
      ? ['sandbox.allow_task_network: whoever starts a run may open the network for its commands']
      : []),
    ...(server.auth === 'none'
      ? ['server.auth is none: every local program may use this server']
      : []),
    ...(proxy !== undefined && !isSafeUrl(proxy)
      ? [
          `api.proxy.base_url is http: the key and the code travel to ${new URL(proxy).host} unencrypted`,
        ]
      : []),
    ...(telemetry.otlp_endpoint === undefined
      ? []
      : [`traces of attempts go to ${new URL(telemetry.otlp_endpoint).host}`]),
    ...notify.webhooks.map(({ url }) => `events of tasks go to ${new URL(url).host}`),
    ...notify.commands.map(({ command: [program] }) => `events of tasks start ${program}`),
  ];
};
