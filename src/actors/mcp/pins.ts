import { readFileSync, statSync } from 'node:fs';
import { z } from 'zod';
import { writeFileAtomically } from '../files/atomic-write.ts';
import { hasCode } from '../files/error-code.ts';
import type { McpTool } from './port.ts';

const pinnedSchema = z.object({
  name: z.string(),
  server: z.string(),
  tool: z.string(),
  description: z.string(),
  parameters: z.record(z.string(), z.unknown()),
  fingerprint: z.string(),
});
const pinsSchema = z.object({ servers: z.record(z.string(), z.array(pinnedSchema)) });

/** The tools of each server as the user has them: as they were first seen, or allowed later. */
export interface Pins {
  /** Null: nothing was ever seen of the server. */
  of(server: string): readonly McpTool[] | null;
  keep(server: string, tools: readonly McpTool[]): Promise<void>;
}

/** `broken`: every tool needs permission again, since nobody knows what was allowed. */
const readPins = (file: string) => {
  try {
    const { servers } = pinsSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
    return { kept: new Map<string, readonly McpTool[]>(Object.entries(servers)), broken: false };
  } catch (error) {
    return { kept: new Map<string, readonly McpTool[]>(), broken: !hasCode(error, 'ENOENT') };
  }
};

/** Changes when another process has written the file. */
const stampOfPins = (file: string): string => {
  const { ino, mtimeMs = 0 } = statSync(file, { throwIfNoEntry: false }) ?? {};
  return `${ino} ${mtimeMs}`;
};

export const createPins = (file: string): Pins => {
  let stamp = stampOfPins(file);
  let { kept, broken } = readPins(file);
  let writing = Promise.resolve();
  const takeChanges = (): void => {
    const now = stampOfPins(file);
    if (now === stamp) return;
    stamp = now;
    ({ kept, broken } = readPins(file));
  };
  return {
    of: (server) => {
      takeChanges();
      return kept.get(server) ?? (broken ? [] : null);
    },
    keep: async (server, tools) => {
      takeChanges();
      kept.set(server, tools);
      const write = writing.then(async () => {
        const text = JSON.stringify({ servers: Object.fromEntries(kept) });
        await writeFileAtomically(file, `${text}\n`);
        stamp = stampOfPins(file);
      });
      writing = write.catch(() => {});
      await write;
    },
  };
};

/** Pins that are forgotten with this process. */
export const createVolatilePins = (): Pins => {
  const kept = new Map<string, readonly McpTool[]>();
  return {
    of: (server) => kept.get(server) ?? null,
    keep: async (server, tools) => void kept.set(server, tools),
  };
};
