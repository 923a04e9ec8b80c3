import { existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';

/** Several test files may ask at once: a program is installed beside its place, and moved there. */
const install = async (folder: string, wanted: string): Promise<string | null> => {
  const own = mkdtempSync(`${folder}-`);
  try {
    // Some ask for a newer Node than they need; our own .npmrc is strict.
    const options = ['--engine-strict=false', '--no-audit', '--no-fund'];
    const args = ['install', '--prefix', own, ...options, wanted];
    const authorities = process.env['AGENT_TEST_CA_CERTS'];
    const env = authorities === undefined ? {} : { NODE_EXTRA_CA_CERTS: authorities };
    const { exitCode, stderr } = await execa('npm', args, { env, reject: false, timeout: 240_000 });
    if (exitCode !== 0) return stderr.trim().split('\n').slice(0, 3).join('; ');
    try {
      renameSync(own, folder);
    } catch (error) {
      if (!existsSync(folder)) throw error;
    }
    return null;
  } finally {
    rmSync(own, { recursive: true, force: true });
  }
};

/**
 * The program of `AGENT_TEST_<NAME>`, else of the npm package, installed once into a temporary
 * folder; or the reason why there is none.
 *
 * @param wanted with its version, such as `opencode-ai@1.18.33`
 */
export const npmProgram = async (
  name: string,
  wanted: string,
): Promise<{ readonly path: string } | { readonly reason: string }> => {
  const given = process.env[`AGENT_TEST_${name.toUpperCase().replaceAll('-', '_')}`];
  if (given !== undefined) return { path: given };
  const folder = join(tmpdir(), `agent-test-${name}-${wanted.split('@').at(-1)}`);
  const path = join(folder, 'node_modules', '.bin', name);
  const refused = existsSync(path) ? null : await install(folder, wanted);
  if (refused !== null) return { reason: `${name} could not be installed: ${refused}` };
  const tried = await execa(path, ['--version'], { reject: false, timeout: 60_000 });
  return tried.exitCode === 0
    ? { path }
    : { reason: `${name} does not run here: ${tried.stderr.slice(-300)}` };
};
