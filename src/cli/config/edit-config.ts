import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { writeFileAtomically } from '../../actors/files/atomic-write.ts';
import type { CommandContext } from '../client/command-context.ts';
import { hasTerminal, openEditor } from '../output/editor.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { UsageError } from '../words/usage-error.ts';
import { configNow } from './config.ts';
import { ConfigError } from './config-error.ts';
import { readByServer, readTextIfAny, requireAccepted, type Target } from './own-file.ts';
import { reloadServer } from './reload-server.ts';

/** True when the draft replaces the file; false when the user gives up. @throws UsageError */
const editUntilValid = async (
  context: CommandContext,
  draft: string,
  target: string,
): Promise<boolean> => {
  const { io, env } = context;
  for (;;) {
    openEditor(draft, env);
    try {
      const given = { file: target, text: readFileSync(draft, 'utf8') };
      for (const left of await requireAccepted(context, given))
        io.err(`warning: servers still refuse the configuration: ${left}`);
      return true;
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      io.err(`agent: ${error.message}`);
      const said = io.ask === null ? null : await io.ask('Edit it again? [Y/n] ');
      if (said === null || /^n/i.test(said)) return false;
    }
  }
};

/** Opens a copy beside the file in an editor; a copy that is not valid never replaces it. */
export const editConfig = async (
  context: CommandContext,
  { target, scope }: Target,
): Promise<number> => {
  const { io, json } = context;
  if (!hasTerminal())
    throw new UsageError(
      'config edit opens an editor and needs a terminal; use: agent config set <key> <value>',
    );
  const folder = dirname(target);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  // Relative paths in it start at its folder.
  const draft = join(folder, `.edit-${randomBytes(6).toString('hex')}.json`);
  const before = readTextIfAny(target);
  const read = readByServer(context);
  const counted = configNow({ config: read.config, project: context.project }, read.env);
  const given = before ?? '{\n}\n';
  const kept = before === null ? `${target} was not written` : `${target} is as it was`;
  writeFileSync(draft, given, { flag: 'wx', mode: 0o600 });
  try {
    if (!(await editUntilValid(context, draft, target))) {
      io.err(kept);
      return exitCodes.failed;
    }
    const text = readFileSync(draft, 'utf8');
    const isChanged = text !== given;
    if (isChanged) await writeFileAtomically(target, text);
    if (json) io.json({ file: target, changed: isChanged });
    else io.out(isChanged ? `wrote ${target}` : kept);
    if (isChanged) await reloadServer(context, scope, counted);
    return exitCodes.done;
  } finally {
    rmSync(draft, { force: true });
  }
};
