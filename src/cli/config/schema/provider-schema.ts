import { z } from 'zod';
import { absolutePath, httpUrl, isSafeForKeys } from './config-values.ts';

const ownNetwork = 'must be https, or an address of this machine or of your network';
export const providerUrl = httpUrl
  .refine(isSafeForKeys, ownNetwork)
  .refine(
    (text) => !new URL(text).username && !new URL(text).password,
    'holds a user or password, which cannot be sent; use the key or a header',
  );

const provider = z.strictObject({
  type: z
    .enum(['openai', 'anthropic', 'google', 'bedrock', 'vertex', 'openai-compatible'])
    .optional()
    .describe(
      'the API that it speaks; unset: that of the built-in provider of this name, else openai-compatible',
    ),
  base_url: providerUrl
    .optional()
    .describe('its address; https, or an address of this machine or of your network'),
  key_env: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'expected the name of a variable')
    .optional()
    .describe('the variable that holds the key'),
  key_file: absolutePath.optional().describe('a file that holds the key; wins over the variable'),
  headers: z
    .record(z.string().regex(/^[\w-]+$/, 'expected the name of a header'), z.string().max(4_000))
    .default({})
    .describe('sent with each request'),
  cache: z
    .enum(['auto', 'off', '1h'])
    .default('auto')
    .describe(
      'whether a provider that must be asked keeps what it read of a conversation; 1h: for an hour, which costs twice the input once',
    ),
});

/** Nobody is called as a part of a model's name is. */
export const providers = z
  .record(
    z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'expected small letters, digits and _ -'),
    provider,
  )
  .default({})
  .describe('providers of models by name; a model is <provider>/<model>');
