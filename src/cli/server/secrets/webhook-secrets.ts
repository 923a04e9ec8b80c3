import { createHash } from 'node:crypto';
import type { Webhook } from '../../../actors/notify/post-webhook.ts';
import { ConfigError } from '../../config/config-error.ts';
import type { Config } from '../../config/schema/config-schema.ts';
import { readPrivateText } from './private-files.ts';

const secretBytes = { least: 24, most: 64 };

type WebhookConfig = Config['notify']['webhooks'][number];

const secretText = (
  { secret_env, secret_file }: WebhookConfig,
  env: NodeJS.ProcessEnv,
  key: string,
): string => {
  if (secret_file !== undefined) return readPrivateText(secret_file, `${key}.secret_file`).trim();
  const given = env[secret_env ?? ''];
  if (given !== undefined && given !== '') return given.trim();
  throw new ConfigError(
    `${key}.secret_env: the variable ${secret_env} is not set; set it for the server`,
  );
};

const decodeSecret = (secret: string, key: string): Uint8Array => {
  const [, base64 = ''] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret) ?? [];
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.length >= secretBytes.least && bytes.length <= secretBytes.most) return bytes;
  throw new ConfigError(
    `${key}: the secret must be whsec_ and ${secretBytes.least} to ${secretBytes.most} bytes in base64; make one: echo "whsec_$(openssl rand -base64 32)"`,
  );
};

export interface SecretWebhook extends Webhook {
  /** Replaced wherever it would be shown. */
  readonly secretText: string;
}

export const shortHash = (text: string): string =>
  createHash('sha256').update(text).digest('hex').slice(0, 16);

const forgeSecretAtLeast = 16;

/** Takes the secret of deliveries of the forge out of the environment. @throws ConfigError */
export const takeForgeSecret = ({ forge }: Config, env: NodeJS.ProcessEnv): string | null => {
  const { webhook_secret_env: name } = forge;
  if (name === undefined) return null;
  const secret = env[name]?.trim() ?? '';
  delete env[name];
  if (secret.length >= forgeSecretAtLeast) return secret;
  const has = secret === '' ? 'is not set' : `holds fewer than ${forgeSecretAtLeast} characters`;
  throw new ConfigError(
    `forge.webhook_secret_env: the variable ${name} ${has}; set it for the server, to what \`openssl rand -hex 32\` prints`,
  );
};

/** Takes the secrets out of the environment, so that no child gets them. @throws ConfigError */
export const takeWebhooks = (
  { notify }: Config,
  env: NodeJS.ProcessEnv,
): readonly SecretWebhook[] => {
  const webhooks = notify.webhooks.map((given, at): SecretWebhook => {
    const key = `notify.webhooks.${at}`;
    const text = secretText(given, env, key);
    const url = new URL(given.url);
    return {
      key: shortHash(url.href),
      url,
      events: new Set(given.events),
      secret: decodeSecret(text, key),
      allowPrivate: given.allow_private,
      secretText: text,
    };
  });
  for (const { secret_env } of notify.webhooks)
    if (secret_env !== undefined) delete env[secret_env];
  return webhooks;
};
