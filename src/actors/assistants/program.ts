import { homedir } from 'node:os';
import { z } from 'zod';

export interface AssistantProgram {
  /** Default: found on PATH. */
  readonly path?: string;
  readonly args?: readonly string[];
}

export const homeIn = (env: Readonly<Record<string, string>>): string => env['HOME'] ?? homedir();

/** Null for a line that is not JSON: programs print such lines, too. */
export const parseJsonLine = (line: string): unknown => {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
};

/** The id becomes an argument: it must never look like an option. */
export const sessionIdSchema = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/);

/** Guesses from a message alone whether a later attempt may succeed. */
export const isTransient = (message: string): boolean =>
  /\b(408|429|5\d\d)\b|network|timed? ?out|overloaded/i.test(message);
