import type { CommandContext } from '../client/command-context.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { registerHandler, unregisterHandler } from './register.ts';
import { thisProgram } from './this-program.ts';

const good: ReadonlySet<string> = new Set([
  'registered',
  'already_registered',
  'updated',
  'removed',
  'not_registered',
]);

const end = (
  { io, json }: CommandContext,
  outcome: { readonly status: string; readonly line: string },
): number => {
  if (json) io.json(outcome);
  else io.out(outcome.line);
  return good.has(outcome.status) ? exitCodes.done : exitCodes.failed;
};

/** `force` replaces another program. */
export const register = async (context: CommandContext, force: boolean): Promise<number> =>
  end(context, await registerHandler(thisProgram(context.env, force)));

export const unregister = async (context: CommandContext): Promise<number> =>
  end(context, await unregisterHandler(thisProgram(context.env)));
