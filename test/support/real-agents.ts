import { existsSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';

const packages = {
  opencode: 'opencode-ai@1.18.33',
  gemini: '@google/gemini-cli@0.61.0',
  copilot: '@github/copilot@1.0.102',
} as const;
export type RealAgent = keyof typeof packages;

/**
 * The program of `AGENT_TEST_OPENCODE`, `…_GEMINI` or `…_COPILOT`, else the npm package, installed
 * once into a temporary folder; or the reason why there is none.
 */
export const realAgent = async (
  name: RealAgent,
): Promise<{ readonly path: string } | { readonly reason: string }> => {
  const given = process.env[`AGENT_TEST_${name.toUpperCase()}`];
  if (given !== undefined) return { path: given };
  const wanted = packages[name];
  const folder = join(tmpdir(), `agent-test-${name}-${wanted.split('@').at(-1)}`);
  const path = join(folder, 'node_modules', '.bin', name);
  mkdirSync(folder, { recursive: true });
  if (!existsSync(path)) {
    const args = ['install', '--prefix', folder, '--no-audit', '--no-fund', wanted];
    const { exitCode, stderr } = await execa('npm', args, { reject: false, timeout: 240_000 });
    if (exitCode !== 0)
      return { reason: `${name} could not be installed: ${stderr.trim().split('\n').at(-1)}` };
  }
  const tried = await execa(path, ['--version'], { reject: false, timeout: 60_000 });
  return tried.exitCode === 0
    ? { path }
    : { reason: `${name} does not run here: ${tried.stderr.slice(-300)}` };
};
