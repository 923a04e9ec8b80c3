import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { childEnvironment } from '../../build/actors/process/run-command.js';
import { runSandboxed } from '../../build/actors/sandbox/run-sandboxed.js';
import { evalsFolder } from './suite.mjs';

const limitMs = 120_000;
const kept = 32 * 1024;

/**
 * Applies an attempt's patch in a new folder and runs the checker there. The checker runs code that
 * an agent wrote, so it runs in the same sandbox. @returns null when all checks hold, else the
 * failed ones
 */
export const checkWork = async ({ folder }, { project, patch, summary, at, sandbox }) => {
  const work = join(at, 'work');
  const said = join(at, 'said');
  mkdirSync(said);
  writeFileSync(join(said, 'summary.md'), summary);
  execFileSync('git', ['clone', '--quiet', project, work], { stdio: 'ignore' });
  if (patch !== '')
    execFileSync('git', ['apply', '-'], {
      cwd: work,
      input: patch,
      stdio: ['pipe', 'ignore', 'pipe'],
    });
  const result = await runSandboxed(sandbox, {
    argv: [process.execPath, join(folder, 'check.mjs'), work, join(said, 'summary.md')],
    root: work,
    readable: [evalsFolder, said],
    env: childEnvironment(process.env),
    network: false,
    timeoutMs: limitMs,
    signal: new AbortController().signal,
    headBytes: kept,
    tailBytes: kept,
  });
  if ('refusal' in result) return result.refusal;
  const lines = result.output.trim().split('\n');
  // Code of an agent that ends the process early must not count as a successful check.
  if (result.exitCode === 0 && /^all \d+ checks hold$/.test(lines.at(-1))) return null;
  const failed = lines
    .filter((line) => line.startsWith('not ok - '))
    .map((line) => line.slice('not ok - '.length));
  return failed.length > 0 ? failed.join('; ') : `the checker did not finish: ${lines.at(-1)}`;
};
