import { homedir } from 'node:os';
import { z } from 'zod';

/** Where an assistant's program is, and what the user adds to its arguments. */
export interface AssistantProgram {
  /** Absent means: found on PATH. */
  readonly path?: string;
  readonly args?: readonly string[];
}

/** The home of the user by the environment of an assistant. */
export const homeIn = (env: Readonly<Record<string, string>>): string => env['HOME'] ?? homedir();

/** The JSON value of a line, or null: programs also print what is none. */
export const parseJsonLine = (line: string): unknown => {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
};

/** It goes into arguments: never anything that could be taken for an option. */
export const sessionIdSchema = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/);

/** Of a failure whose words are all that is known: whether the same may go well later. */
export const isTransient = (message: string): boolean =>
  /\b(408|429|5\d\d)\b|network|timed? ?out|overloaded/i.test(message);
