import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { execa } from 'execa';
import { onTestFinished } from 'vitest';
import { temporaryFolder } from './temporary.ts';

const root = join(import.meta.dirname, '..', '..');

/**
 * The programs in their own folder, with the packages that npm installs with them, and an empty
 * project.
 */
export const install = () => {
  const folder = temporaryFolder();
  for (const part of ['dist', 'configs', 'package.json'])
    cpSync(join(root, part), join(folder, part), { recursive: true });
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, { readonly dev?: boolean }>>;
  };
  for (const [path, { dev }] of Object.entries(packages)) {
    if (path === '' || dev === true || !existsSync(join(root, path))) continue;
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    symlinkSync(join(root, path), join(folder, path));
  }
  const { AGENT_SERVER_CONFIG: _, OPENAI_API_KEY: __, ...inherited } = process.env;
  const env = {
    ...inherited,
    HOME: temporaryFolder(),
    AGENT_STATE_DIR: join(temporaryFolder(), 'state'),
  };
  const cwd = temporaryFolder();
  mkdirSync(join(cwd, '.beads'));
  const run = (program: 'agent' | 'agent-server', ...args: readonly string[]) => {
    const script = join(folder, 'dist', 'cli', `${program}.js`);
    return execa(process.execPath, [script, ...args], {
      cwd,
      env,
      extendEnv: false,
      reject: false,
    });
  };
  onTestFinished(async () => void (await run('agent', 'server', 'stop')));
  return { folder, cwd, env, defaultFile: join(folder, 'configs', 'agent-server.json'), run };
};
