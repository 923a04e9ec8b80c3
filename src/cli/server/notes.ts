import { networkAccess, type Settings } from '../../actors/engine/attempts/settings.ts';
import type { NetworkAccess } from '../../actors/network/access.ts';
import { type Role, roles } from '../../machines/task.ts';
import { effectiveCap } from '../config/config.ts';
import type { Config } from '../config/schema/config-schema.ts';
import { isSafeUrl } from '../config/schema/config-values.ts';

/** What is reached, after a verb. */
export const accessText = (access: NetworkAccess): string => {
  if (access === true)
    return 'the whole network of this machine, loopback and private addresses included';
  if (access === false || access.length === 0) return 'no network';
  const hosts = access.includes('*') ? 'every public host' : access.join(', ');
  return `${hosts}, through a proxy`;
};

/** `commands of engineer reach …`, one line for each access. */
const accessLines = (settings: Settings, kind: 'commands' | 'assistant'): readonly string[] => {
  const rolesBy = new Map<string, Role[]>();
  for (const role of roles) {
    const text = accessText(networkAccess(settings, { role, options: {} }, { kind }));
    rolesBy.set(text, [...(rolesBy.get(text) ?? []), role]);
  }
  const who = kind === 'commands' ? 'commands' : 'assistants';
  return [...rolesBy].map(([text, all]) =>
    rolesBy.size === 1 ? `${who} reach ${text}` : `${who} of ${all.join(', ')} reach ${text}`,
  );
};

export const assistantNetworkText = (settings: Settings): string =>
  accessLines(settings, 'assistant').join('; ');

/** What commands reach where that is not nothing. */
export const networkNotes = (settings: Settings, { sandbox }: Config): readonly string[] =>
  sandbox.mode === 'off'
    ? []
    : accessLines(settings, 'commands').filter((line) => !line.endsWith(accessText(false)));

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
