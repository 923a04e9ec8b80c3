import { z } from 'zod';

export const requestIdSchema = z.union([z.string().max(1_000), z.number()]);
export type RequestId = z.infer<typeof requestIdSchema>;
