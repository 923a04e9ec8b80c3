import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { readRegular } from '../files/regular-file.ts';
import { normalHost } from '../network/access.ts';
import type { Endpoint } from '../network/proxy.ts';
import type { Assistant, AssistantStart } from './port.ts';

const settingsBytesAtMost = 1024 * 1024;
/** `base_url = "…"`, `"baseURL": "…"`, `"ANTHROPIC_BASE_URL": "…"`, as settings and arguments have it. */
const addressSetting =
  /(?:base_?url|api_?base|openai_endpoint)["']?\s*[:=]\s*["']?(https?:\/\/[^\s"',}]+)/gi;
const addressVariable = /(BASE_URL|OPENAI_ENDPOINT|GH_HOST)$/;

const endpointOf = (text: string): readonly Endpoint[] => {
  const address = /^https?:\/\//i.test(text) ? text : `https://${text}`;
  if (!URL.canParse(address)) return [];
  const { hostname, port, protocol } = new URL(address);
  const host = normalHost(hostname);
  const known = protocol === 'http:' ? 80 : 443;
  return host === null ? [] : [{ host, port: port === '' ? known : Number(port) }];
};

/** The user's own settings files, which the assistant reads. */
const settingsFiles = (
  { needs }: Assistant,
  env: Readonly<Record<string, string>>,
): readonly string[] => {
  const { files, folders } = needs(env);
  const inFolders = folders.flatMap(({ path, shown }) =>
    existsSync(path)
      ? readdirSync(path)
          .filter((name) => shown.test(name))
          .map((name) => join(path, name))
      : [],
  );
  return [...files, ...inFolders].filter((path) => /\.(json|jsonc|toml)$/.test(path));
};

const textOf = (path: string): string => {
  try {
    return readRegular(path, settingsBytesAtMost);
  } catch {
    return '';
  }
};

/**
 * Where an assistant finds its provider: the hosts that it is known for, and the addresses in its
 * variables, its arguments and the user's own settings of it.
 */
export const providersOf = (
  assistant: Assistant,
  start: AssistantStart,
  env: Readonly<Record<string, string>>,
): readonly Endpoint[] => {
  const texts = [...settingsFiles(assistant, env).map(textOf), assistant.argv(start).join('\n')];
  const found = [
    ...assistant.providers,
    ...Object.entries(env).flatMap(([name, value]) => (addressVariable.test(name) ? [value] : [])),
    ...texts.flatMap((text) =>
      [...text.matchAll(addressSetting)].map(([, address = '']) => address),
    ),
  ].flatMap(endpointOf);
  return [...new Map(found.map((one) => [`${one.host} ${one.port}`, one])).values()];
};
