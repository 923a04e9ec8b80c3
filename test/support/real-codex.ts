import { existsSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';

const version = '0.169.0';

/**
 * The program of `AGENT_TEST_CODEX`, else the npm package, installed once into a temporary folder;
 * or the reason why there is none.
 */
export const realCodex = async (): Promise<
  { readonly path: string } | { readonly reason: string }
> => {
  const given = process.env['AGENT_TEST_CODEX'];
  if (given !== undefined) return { path: given };
  const folder = join(tmpdir(), `agent-test-codex-${version}`);
  const path = join(folder, 'node_modules', '.bin', 'codex');
  mkdirSync(folder, { recursive: true });
  if (!existsSync(path)) {
    const args = [
      'install',
      '--prefix',
      folder,
      '--no-audit',
      '--no-fund',
      `@openai/codex@${version}`,
    ];
    const { exitCode, stderr } = await execa('npm', args, { reject: false, timeout: 240_000 });
    if (exitCode !== 0)
      return { reason: `codex could not be installed: ${stderr.trim().split('\n').at(-1)}` };
  }
  const tried = await execa(path, ['--version'], { reject: false, timeout: 30_000 });
  return tried.exitCode === 0
    ? { path }
    : { reason: `codex does not run here: ${tried.stderr.slice(-300)}` };
};
