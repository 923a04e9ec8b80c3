import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import { readRegular } from '../../actors/files/regular-file.ts';
import { oneLine } from '../output/safe-text.ts';
import { isSafeUrl } from './config-values.ts';

const file = '.mcp.json';
const bytesAtMost = 64 * 1024;
const shownValueLength = 300;

const boundedText = z.string().max(4_000);
const variables = z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/), boundedText).default({});
const server = z.union([
  z.object({
    command: boundedText.min(1),
    args: z.array(boundedText).max(100).default([]),
    env: variables,
  }),
  z.object({
    url: z.url({ protocol: /^https?$/, abort: true }).refine(isSafeUrl),
    headers: z.record(z.string().regex(/^[\w-]+$/), boundedText).default({}),
  }),
]);
const projectFileSchema = z.object({ mcpServers: z.record(z.string(), z.unknown()) });

/** A server that the project's own file names. It is nothing until the user allows it. */
export interface ProjectServer {
  readonly name: string;
  /** Another one when anything of its entry changes. */
  readonly fingerprint: string;
  readonly entry: z.infer<typeof server>;
}

const serverNamed = (name: string, given: unknown): readonly ProjectServer[] => {
  const { data: entry } = server.safeParse(given);
  if (entry === undefined) return [];
  const hash = createHash('sha256')
    .update(JSON.stringify([name, entry]))
    .digest('hex');
  return [{ name, entry, fingerprint: hash.slice(0, 12) }];
};

/** Untrusted: bounded, no links, never throws. Entries that we cannot use are left out. */
export const projectServers = (root: string): readonly ProjectServer[] => {
  try {
    const { mcpServers } = projectFileSchema.parse(
      JSON.parse(readRegular(join(root, file), bytesAtMost)),
    );
    return Object.entries(mcpServers).flatMap(([name, given]) => serverNamed(name, given));
  } catch {
    return [];
  }
};

/** One line, safe to show. */
export const entryText = ({ entry }: ProjectServer): string =>
  oneLine(JSON.stringify(entry), shownValueLength);
