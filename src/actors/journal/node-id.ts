import { randomBytes } from 'node:crypto';

/** Names one start of a server: `2026-11-23T03:04:05.678Z-5f3a9c`. `at`: epoch ms. */
export const createNodeId = (at: number): string =>
  `${new Date(at).toISOString()}-${randomBytes(3).toString('hex')}`;
