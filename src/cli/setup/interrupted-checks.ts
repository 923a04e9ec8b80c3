import { z } from 'zod';
import { getJson } from '../client/http-request.ts';
import type { Address } from '../client/transport.ts';
import type { Check } from './backend-checks.ts';

const askMs = 5_000;

const toldSchema = z.object({
  interrupted: z
    .array(z.object({ taskId: z.string().nullable(), message: z.string(), isLeft: z.boolean() }))
    .default([]),
});

/** What the running server found at its start. @throws CallError */
export const interruptedChecks = async (address: Address): Promise<readonly Check[]> => {
  const { data } = toldSchema.safeParse(await getJson(address, '/surroundings', askMs));
  return (data?.interrupted ?? []).map(({ taskId, message, isLeft }) => ({
    check: 'quarantine',
    status: isLeft ? 'problem' : 'note',
    detail: taskId === null ? message : `${taskId}: ${message}`,
  }));
};
