import { z } from 'zod';
import { noticeTypes } from '../../../actors/notify/notice.ts';
import { absolutePath, httpUrl, positive } from './config-values.ts';

const events = z
  .array(z.enum(noticeTypes))
  .min(1)
  .default([...noticeTypes])
  .describe(`events to tell of: ${noticeTypes.join(', ')}; unset: all`);

const hasNoPassword = (url: string): boolean => {
  const { username, password } = new URL(url);
  return username === '' && password === '';
};

const webhook = z
  .strictObject({
    url: httpUrl
      .refine(hasNoPassword, 'must hold no name or password; the receiver checks the signature')
      .describe('address that gets the events; https, or http with allow_private'),
    events,
    secret_env: z
      .string()
      .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'expected the name of a variable')
      .optional()
      .describe('environment variable with the secret of the signature, whsec_ and base64'),
    secret_file: absolutePath
      .optional()
      .describe('file with that secret, which only you can read; instead of secret_env'),
    allow_private: z
      .boolean()
      .default(false)
      .describe('whether the receiver may be on this machine or in a local network'),
  })
  .refine((given) => (given.secret_env === undefined) !== (given.secret_file === undefined), {
    message: 'needs one of secret_env and secret_file',
  })
  .refine(({ url, allow_private }) => allow_private || url.startsWith('https:'), {
    path: ['url'],
    message: 'must be https, or allow_private must be true',
  });

const command = z.strictObject({
  command: z
    .array(z.string().min(1).max(4_000))
    .min(1)
    .max(100)
    .describe('program and arguments; it gets the event as JSON on its standard input'),
  events,
  timeout_seconds: positive.max(600).default(30).describe('time limit of the program'),
});

export const notifySection = z
  .strictObject({
    webhooks: z
      .array(webhook)
      .max(20)
      .refine(
        (given) => new Set(given.map(({ url }) => new URL(url).href)).size === given.length,
        'must not hold one url twice',
      )
      .default([])
      .describe(
        'receivers that get a signed POST for each event: url, events, secret_env or secret_file, allow_private',
      ),
    commands: z
      .array(command)
      .max(20)
      .default([])
      .describe('programs that run for each event: command, events, timeout_seconds'),
  })
  .prefault({});
