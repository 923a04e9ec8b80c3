import { lstatSync, mkdirSync, renameSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Sandbox, Wanted } from '../sandbox/port.ts';
import { type Command, type CommandResult, runCommand } from './child.ts';

export type ConfinedCommand = Wanted & Omit<Command, 'argv' | 'cwd' | 'env'>;

export interface ConfinedResult extends CommandResult {
  /** What the command made that other programs would obey, by name; it is no longer where it was. */
  readonly quarantined: readonly string[];
}

const there = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

/** Moves a file or folder out of the way of whoever would obey it, and loses nothing of it. */
const quarantine = (root: string, name: string): void => {
  const folder = join(root, '.beads', 'quarantine', String(Date.now()));
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  renameSync(join(root, name), join(folder, basename(name)));
};

/** Runs a command in the sandbox, or says why it is refused. */
export const runConfined = async (
  sandbox: Sandbox,
  { argv, root, readable, git, env, ...bounds }: ConfinedCommand,
): Promise<ConfinedResult | { readonly refusal: string }> => {
  const confined = sandbox.confine({ argv, root, readable, git, env });
  if ('refusal' in confined) return confined;
  const { forbidden, release, ...spawned } = confined;
  const result = await runCommand({ ...bounds, ...spawned });
  release?.();
  const quarantined = forbidden.filter((name) => there(join(root, name)));
  for (const name of quarantined) quarantine(root, name);
  return { ...result, quarantined };
};
