import { cpSync } from 'node:fs';
import type { Running, Setting } from './running.ts';
import { temporaryFolder } from './temporary.ts';

/** The files as they are now, like after a power cut or kill -9: their writer does not know. */
export const crash = async (running: Running, setting: Setting) => {
  const [root, stateDir] = [temporaryFolder(), temporaryFolder()];
  cpSync(running.root, root, { recursive: true });
  cpSync(running.stateDir, stateDir, { recursive: true });
  await running.stop();
  return { ...setting, root, stateDir };
};
