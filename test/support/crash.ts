import { cpSync } from 'node:fs';
import type { Running, Setting } from './running.ts';
import { temporaryFolder } from './temporary.ts';

/** What a power cut or kill -9 leaves: the files as they are at this moment, without a word from who wrote them. */
export const crash = async (running: Running, setting: Setting) => {
  const [root, stateDir] = [temporaryFolder(), temporaryFolder()];
  cpSync(running.root, root, { recursive: true });
  cpSync(running.stateDir, stateDir, { recursive: true });
  await running.stop();
  return { ...setting, root, stateDir };
};
