import { isAbsolute, normalize } from 'node:path';
import { z } from 'zod';

export const port = z.int().min(0).max(65_535);
export const positive = z.int().min(1);
/** `abort`: later checks parse the address. */
export const httpUrl = z.url({
  protocol: /^https?$/,
  abort: true,
  error: 'expected an address like https://host/path or http://host:port/path',
});

/** True for https and for this machine. */
export const isSafeUrl = (text: string): boolean => {
  const { protocol, hostname } = new URL(text);
  return protocol === 'https:' || ['localhost', '127.0.0.1', '[::1]'].includes(hostname);
};

export const isInsideProject = (path: string): boolean =>
  path !== '' &&
  !isAbsolute(path) &&
  !normalize(path).startsWith('..') &&
  normalize(path).split('/')[0] !== '.git';

export const price = z.strictObject({
  input_per_million: z.number().nonnegative().describe('USD per million input tokens'),
  cached_input_per_million: z
    .number()
    .nonnegative()
    .optional()
    .describe('USD per million cached input tokens; unset: the price of input'),
  output_per_million: z.number().nonnegative().describe('USD per million output tokens'),
});

export const absolutePath = z.string().refine(isAbsolute, 'must be an absolute path');
export const extraArguments = z.array(z.string().max(4_000)).max(50).default([]);
