import { spawnSync } from 'node:child_process';
import { UsageError } from '../words/usage-error.ts';

/** Both ends, since an editor needs them. */
export const hasTerminal = (): boolean =>
  process.stdin.isTTY === true && process.stdout.isTTY === true;

/** Opens `$VISUAL`, `$EDITOR` or vi on the file, and waits. @throws UsageError when it fails */
export const openEditor = (file: string, env: NodeJS.ProcessEnv): void => {
  const editor = env['VISUAL'] || env['EDITOR'] || 'vi';
  const { status } = spawnSync('/bin/sh', ['-c', `${editor} "$1"`, editor, file], {
    stdio: 'inherit',
    env,
  });
  if (status !== 0)
    throw new UsageError(`the editor (${editor}) ended with ${status}, so nothing was done`);
};
