import { z } from 'zod';
import { roles } from '../../machines/task.ts';
import { parseWithProblems } from '../schema-problems.ts';
import { invalidParams, invalidProblems, unknownRoleText } from './errors.ts';
import { taskStates, wireState } from './protocol.ts';

/** Requests of clients. Unknown members are ignored, as A2A wants it. */

/** Members whose content is the client's own: a `Struct` and a `Value` of the protocol. */
const freeMembers: ReadonlySet<string> = new Set(['metadata', 'data']);

const jsonName = (name: string): string =>
  name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

/**
 * Reads what ProtoJSON allows beside its own form: names as in the protocol (`task_id`), and null
 * for a member that is not set. @throws INVALID_PARAMS for a member with two names
 */
export const fromProtoMembers = (given: object): Record<string, unknown> => {
  const members = new Map<string, unknown>();
  for (const [name, value] of Object.entries(given)) {
    const known = jsonName(name);
    // A null in `data` is a value; elsewhere it says that the member is not there.
    if (value === null && known !== 'data') continue;
    if (members.has(known)) throw invalidParams(known, `is given twice, also as ${name}`);
    members.set(known, freeMembers.has(known) ? value : fromProtoJson(value));
  }
  return Object.fromEntries(members);
};

const fromProtoJson = (given: unknown): unknown => {
  if (Array.isArray(given)) return given.map(fromProtoJson);
  return typeof given === 'object' && given !== null ? fromProtoMembers(given) : given;
};

/** An int32 of ProtoJSON may be written as text. */
const fromIntegerText = (given: unknown): unknown =>
  typeof given === 'string' && /^-?\d{1,9}$/.test(given) ? Number(given) : given;
const integer = (least: number, most: number) =>
  z.preprocess(fromIntegerText, z.int().min(least).max(most));

/** An enum of ProtoJSON may be written as its number, which is its place in `names`. */
const fromNumber =
  (names: readonly string[]) =>
  (given: unknown): unknown =>
    typeof given === 'number' ? (names[given] ?? given) : given;

const metadata = z.record(z.string(), z.unknown());
export const idText = z.string().min(1).max(256);
/** It becomes a label. */
const contextId = z
  .string()
  .regex(/^[\x20-\x7e]{1,128}$/, 'expected 1 to 128 printable characters of ASCII');
/** A role; an empty one is none. */
export const tenant = z
  .string()
  .max(128)
  .refine((name) => name === '' || roles.some((role) => role === name), {
    error: ({ input }) => unknownRoleText(String(input)),
  });
const historyLength = integer(0, 100_000);
export const pageSize = integer(1, 100);

const partSchema = z
  .object({
    text: z.string().max(65_536).optional(),
    raw: z
      .string()
      .max(1_048_576)
      .regex(/^[A-Za-z0-9+/_-]*={0,2}$/, 'expected bytes in base64')
      .optional(),
    url: z.string().max(4_096).optional(),
    data: z.unknown().optional(),
    filename: z.string().max(1_024).optional(),
    mediaType: z.string().max(256).optional(),
    metadata: metadata.optional(),
  })
  .refine(
    ({ text, raw, url, data }) =>
      [text, raw, url, data].filter((content) => content !== undefined).length === 1,
    { message: 'expected exactly one of text, raw, url and data' },
  );
export type GivenPart = z.infer<typeof partSchema>;

const messageSchema = z.object({
  messageId: idText,
  role: z.preprocess(
    fromNumber(['ROLE_UNSPECIFIED', 'ROLE_USER', 'ROLE_AGENT']),
    z.enum(['ROLE_USER', 'ROLE_AGENT']),
  ),
  parts: z.array(partSchema).min(1).max(100),
  contextId: contextId.optional(),
  taskId: idText.optional(),
  metadata: metadata.optional(),
  referenceTaskIds: z.array(idText).max(100).optional(),
});
export type GivenMessage = z.infer<typeof messageSchema>;

export const pushConfigSchema = z.object({
  id: idText.optional(),
  url: z.url({ protocol: /^https?$/, error: 'expected an http or https address' }).max(2_048),
  token: z.string().max(1_024).optional(),
  authentication: z
    .object({ scheme: z.string().min(1).max(64), credentials: z.string().max(4_096).optional() })
    .optional(),
});

export const sendSchema = z.object({
  tenant: tenant.optional(),
  message: messageSchema,
  configuration: z
    .object({
      acceptedOutputModes: z.array(z.string().max(256)).max(100).optional(),
      taskPushNotificationConfig: pushConfigSchema.optional(),
      historyLength: historyLength.optional(),
      returnImmediately: z.boolean().optional(),
    })
    .optional(),
  metadata: metadata.optional(),
});
export type SendParams = z.infer<typeof sendSchema>;

export const getSchema = z.object({
  tenant: tenant.optional(),
  id: idText,
  historyLength: historyLength.optional(),
});
export const idSchema = z.object({ tenant: tenant.optional(), id: idText });

const knownState = z.enum(taskStates.map(wireState));
/** No filter. The official client for JavaScript sends the second one if it is given no status. */
const noStates = ['TASK_STATE_UNSPECIFIED', 'UNRECOGNIZED'] as const;

export const listSchema = z.object({
  tenant: tenant.optional(),
  contextId: contextId.optional(),
  status: z
    .preprocess(
      fromNumber(['TASK_STATE_UNSPECIFIED', ...taskStates.map(wireState)]),
      z.union([z.enum(noStates).transform(() => undefined), knownState], {
        error: `expected one of ${taskStates.map(wireState).join(', ')}`,
      }),
    )
    .optional(),
  pageSize: pageSize.default(50),
  pageToken: z.string().max(512).optional(),
  historyLength: historyLength.default(0),
  statusTimestampAfter: z.iso
    .datetime({ offset: true, error: 'expected a time like 2026-01-31T08:00:00Z' })
    .optional(),
  includeArtifacts: z.boolean().default(false),
});
export type ListParams = z.infer<typeof listSchema>;

/** @throws INVALID_PARAMS with each field that is wrong */
export const parseA2a = <Output>(schema: z.ZodType<Output>, params: unknown): Output => {
  const parsed = parseWithProblems(schema, fromProtoJson(params ?? {}));
  if (parsed.ok) return parsed.value;
  throw invalidProblems(parsed.problems);
};
