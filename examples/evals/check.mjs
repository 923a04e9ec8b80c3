// What the checkers share. Usage of a checker: node <eval>/check.mjs <folder with the work> <file
// with the summary> It prints a line for each check and, only when all hold, a last line that says
// so.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [, , folder = '.', summaryFile = ''] = process.argv;
const limitMs = 30_000;
const { NODE_TEST_CONTEXT: _, ...env } = process.env;

/** What the agent said in the end. */
export const summary = () => readFileSync(summaryFile, 'utf8');
export const read = (path) => readFileSync(join(folder, path), 'utf8');
export const load = (path) => import(pathToFileURL(join(folder, path)).href);
/** Runs Node in the folder, or in another one. */
export const node = (args, cwd = folder) => spawnSync(process.execPath, args, { cwd, env, encoding: 'utf8', timeout: limitMs });

/** Whether the project's own tests pass, and how many there are. */
export const ownTests = (cwd = folder) => {
  const { status, stdout } = node(['--test', '--test-reporter=tap'], cwd);
  return { pass: status === 0, count: Number(/^# tests (\d+)/m.exec(stdout)?.[1] ?? 0) };
};

/** The same with one file replaced, in a copy. */
export const ownTestsWith = (path, text) => {
  const copy = mkdtempSync(join(tmpdir(), 'agent-eval-check-'));
  try {
    cpSync(folder, copy, { recursive: true, filter: (from) => !from.endsWith('/.git') });
    writeFileSync(join(copy, path), text);
    return ownTests(copy);
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
};

/** Runs checks by name, one after the other; a check holds when it does not throw. */
export const check = async (checks) => {
  let held = 0;
  const all = Object.entries(checks);
  for (const [title, holds] of all) {
    try {
      await holds();
      held += 1;
      console.log(`ok - ${title}`);
    } catch (error) {
      // What assert says by itself is only that values differ.
      const why = error?.generatedMessage ? '' : `: ${String(error?.message ?? error).split('\n')[0]}`;
      console.log(`not ok - ${title}${why}`);
    }
  }
  if (held === all.length) console.log(`all ${held} checks hold`);
  else process.exitCode = 1;
};
