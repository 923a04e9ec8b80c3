import { z } from 'zod';
import { isErrorCode, type Refusal, ServiceError } from '../../../machines/errors.ts';

/** The largest request or answer. */
const mebibytesAtMost = 4;

const refusalSchema = z.object({ code: z.string(), facts: z.looseObject({}) });
const callReplySchema = z.object({
  result: z.unknown().optional(),
  refusal: refusalSchema.optional(),
});

const requireSmall = (text: string, what: string, remedy: string): string => {
  const mebibytes = Buffer.byteLength(text) / 1024 / 1024;
  if (mebibytes <= mebibytesAtMost) return text;
  const most = `${mebibytes.toFixed(1)} MiB; ${mebibytesAtMost} MiB is the most`;
  throw new ServiceError('internal', { detail: `${what} has ${most}; ${remedy}` });
};

/** @throws internal when they are too large */
export const paramsText = (node: string, params: unknown): string =>
  requireSmall(
    JSON.stringify(params ?? null),
    `the request for the server ${node}`,
    'send it to that server',
  );

/** @throws internal when it is too large */
export const callResultText = (node: string, result: unknown): string =>
  requireSmall(
    JSON.stringify({ result }),
    `the answer of the server ${node}`,
    'ask for a part of it, or ask that server',
  );

export const callRefusalText = ({ code, facts }: ServiceError): string =>
  JSON.stringify({ refusal: { code, facts } });

/** The result in the text of an answer. @throws ServiceError what the other server refused */
export const resultIn = (text: string): unknown => {
  const { result, refusal } = callReplySchema.parse(JSON.parse(text));
  if (refusal === undefined) return result;
  const { code } = refusal;
  if (isErrorCode(code)) throw ServiceError.from(refusal as Refusal);
  throw new ServiceError('internal', {
    detail: `a server of a later version refused it (${code})`,
  });
};
