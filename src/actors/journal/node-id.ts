import { randomBytes } from 'node:crypto';

/**
 * Names one start of a server: `2026-11-23T03:04:05.678Z-5f3a9c`, after `<name>@` for one that shares
 * its store. `at`: epoch ms.
 */
export const createNodeId = (at: number, name?: string): string => {
  const start = `${new Date(at).toISOString()}-${randomBytes(3).toString('hex')}`;
  return name === undefined ? start : `${name}@${start}`;
};
