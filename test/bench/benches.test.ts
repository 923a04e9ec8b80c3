// A bench that cannot run says nothing for as long as nobody runs it: each one, with little to do.
import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { noBrowser } from '../support/browser.ts';
import { isLong } from '../support/long.ts';

const folder = fileURLToPath(new URL('../../bench/', import.meta.url));
const notBenches = new Set([
  ...['lib.mjs', 'run.mjs'],
  ...(noBrowser === null ? [] : ['page.mjs']),
]);
const all = readdirSync(folder).filter((name) => name.endsWith('.mjs') && !notBenches.has(name));
/** Those that cost a second. */
const short = ['dispatch', 'ledger', 'turn'];
const little = {
  ...{ RUNS: '2', TASKS: '200', CALLS: '20', MS: '100', FINISHED: '20', WAITING: '10' },
  ...{ SECONDS: '3', SECONDS_PER_VIEW: '1' },
};

test.each(isLong ? all : short.map((name) => `${name}.mjs`))(
  'bench/%s runs and reports a ratio',
  async (name) => {
    const { stdout, stderr } = await promisify(execFile)(
      process.execPath,
      ['--expose-gc', `${folder}${name}`],
      { env: { ...process.env, ...little, SIZES: '20' } },
    );
    expect(stderr).toBe('');
    expect(stdout).toMatch(/ \d+\.\d\d( |$)/m);
    expect(stdout).not.toContain('NaN');
  },
  isLong ? 300_000 : 60_000,
);
