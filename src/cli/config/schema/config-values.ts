import { isIP } from 'node:net';
import { isAbsolute, normalize } from 'node:path';
import { z } from 'zod';
import { isHostEntry } from '../../../actors/network/access.ts';
import { addressKind } from '../../../actors/network/addresses.ts';

export const port = z.int().min(0).max(65_535);
export const positive = z.int().min(1);
/** `abort`: later checks parse the address. */
export const httpUrl = z.url({
  protocol: /^https?$/,
  abort: true,
  error: 'expected an address like https://host/path or http://host:port/path',
});

export const isPostgresUrl = (text: string): boolean => /^postgres(ql)?:\/\//i.test(text);

/** Anybody who reads the file, or the list of processes, would read it. */
const hasPassword = (text: string): boolean =>
  /^[a-z]+:\/\/[^@/?:]*:[^@/?]+@|[?&]password=/i.test(text);

/** The value may be a secret, so no problem repeats it. */
export const storeUrl = z
  .string()
  .min(1)
  .refine((text) => !isPostgresUrl(text) || !hasPassword(text), {
    error:
      'a password would be seen here; set PGPASSWORD, write it into ~/.pgpass, or name a variable that holds the whole address: DATABASE_URL',
  })
  .refine(
    (text) => isPostgresUrl(text) || isAbsolute(text) || /^[A-Z_][A-Z0-9_]*$/.test(text),
    'expected postgres://user@host:5432/database, the name of a variable that holds such an address, or an absolute path',
  );

/** True for https and for this machine. */
export const isSafeUrl = (text: string): boolean => {
  const { protocol, hostname } = new URL(text);
  return protocol === 'https:' || ['localhost', '127.0.0.1', '[::1]'].includes(hostname);
};

/** A name that only a local network knows: one word, or as RFC 6762, 8375 and home routers have it. */
const localName = /^[^.:]+$|\.(local|lan|internal|home\.arpa)$/;

/** True for https, for this machine and for a network of one's own, which nobody else reads. */
export const isSafeForKeys = (text: string): boolean => {
  const host = new URL(text).hostname.replace(/^\[|\]$/g, '');
  return isSafeUrl(text) || (isIP(host) === 0 ? localName.test(host) : isOwnNetwork(host));
};

const isOwnNetwork = (address: string): boolean =>
  ['private', 'loopback'].includes(addressKind(address));

export const isInsideProject = (path: string): boolean =>
  path !== '' &&
  !isAbsolute(path) &&
  !normalize(path).startsWith('..') &&
  normalize(path).split('/')[0] !== '.git';

/** The table has what is missing, or the price is refused where it is used. */
export const price = z.strictObject({
  input_per_million: z
    .number()
    .nonnegative()
    .optional()
    .describe('USD per million input tokens; unset: as in the price table'),
  cached_input_per_million: z
    .number()
    .nonnegative()
    .optional()
    .describe(
      'USD per million cached input tokens; unset: the price of input, where that is set with output',
    ),
  cache_write_per_million: z
    .number()
    .nonnegative()
    .optional()
    .describe(
      'USD per million input tokens that are written to the cache; unset: the price of input, where that is set with output',
    ),
  output_per_million: z
    .number()
    .nonnegative()
    .optional()
    .describe('USD per million output tokens; unset: as in the price table'),
});

export const absolutePath = z.string().refine(isAbsolute, 'must be an absolute path');
/** `~/` may begin it. */
export const homePath = z
  .string()
  .max(4_000)
  .refine(
    (path) =>
      path
        .replace(/^~\//, '')
        .split('/')
        .every((part) => !['', '.', '..', '~'].includes(part)),
    'must be a path below your home folder, such as .gemini',
  )
  .refine(
    (path) => !path.split('/').includes('agent-task-server'),
    'must not be a folder of this server, which no agent may read',
  );
export const extraArguments = z.array(z.string().max(4_000)).max(50).default([]);

const hostProblem =
  'must be a host (registry.npmjs.org), the hosts below one (*.example.com), an address or a network (10.0.0.0/8), without scheme, port and path';
export const hostList = z.array(z.string().max(260).refine(isHostEntry, hostProblem)).max(200);

export const networkAccess = z.union([z.boolean(), hostList], {
  error: (issue) =>
    Array.isArray(issue.input) ? hostProblem : 'must be false, true, or a list of hosts',
});
