import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, readdirSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, test } from 'vitest';
import { createBubblewrap } from '../../src/actors/sandbox/bubblewrap.ts';

declare module 'vitest' {
  interface TaskMeta {
    /** Why the test is skipped; the end of a run prints it. */
    skipped?: string;
  }
}

/** Everything that it defines is skipped. */
const skipping = <Define extends (...args: never[]) => unknown>(
  define: Define,
  why: string,
): Define =>
  new Proxy(define, {
    apply: (target, self, [name, first, second]) => {
      const [options, work] = typeof first === 'function' ? [{}, first] : [first, second];
      const skipped = { ...options, skip: true, meta: { skipped: why } };
      return Reflect.apply(target, self, [name, skipped, work]);
    },
    get: (target, key) => {
      const part: unknown = Reflect.get(target, key);
      return (key === 'each' || key === 'for') && typeof part === 'function'
        ? (...cases: unknown[]) => skipping(part.apply(target, cases), why)
        : part;
    },
  });

/** `test`, unless there is a reason to skip it: `testUnless(noSandbox)('…', …)`. */
export const testUnless = (why: string | null): typeof test =>
  why === null ? test : skipping(test, why);

/** `describe`, unless there is a reason to skip all of it. */
export const describeUnless = (why: string | null): typeof describe =>
  why === null ? describe : skipping(describe, why);

/** Where the shell finds a program; undefined: nowhere. */
export const pathOf = (program: string): string | undefined =>
  (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((folder) => join(folder, program))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return statSync(path).isFile();
      } catch {
        return false;
      }
    });

/** Why tests that need a program are skipped; null: they run. */
const unlessOnPath = (program: string, debianPackage = program): string | null =>
  pathOf(program) === undefined
    ? `${program} is not installed (Debian: apt install ${debianPackage})`
    : null;

export const noFish = unlessOnPath('fish');
export const noGio = unlessOnPath('gio', 'libglib2.0-bin');
export const noLfs = unlessOnPath('git-lfs');
export const noOpenssl = unlessOnPath('openssl');
export const noPromtool = unlessOnPath('promtool', 'prometheus');
export const noPython = unlessOnPath('python3');
/** It gives a program a terminal. */
export const noScript = unlessOnPath('script', 'bsdutils');
export const noSshKeygen = unlessOnPath('ssh-keygen', 'openssh-client');
export const noZsh = unlessOnPath('zsh');

const mayTrace = (): boolean =>
  spawnSync('strace', ['-f', '--seccomp-bpf', '-e', 'trace=execve', 'true']).status === 0;
export const noStrace =
  unlessOnPath('strace') ?? (mayTrace() ? null : 'strace may not trace programs here');

const { ok, detail } = createBubblewrap({ readPaths: [], network: false }).check();
export const noSandbox = ok ? null : detail;

/** Of the libraries that set the time of day of a program; null: not installed. */
export const faketimeFolder =
  ['/usr/lib', ...(existsSync('/usr/lib') ? readdirSync('/usr/lib') : [])]
    .map((folder) => join('/usr/lib', folder, 'faketime'))
    .find((folder) => existsSync(join(folder, 'libfaketime.so.1'))) ?? null;
export const noFaketime =
  faketimeFolder === null ? 'faketime is not installed (Debian: apt install faketime)' : null;

export const notLinux = process.platform === 'linux' ? null : 'only Linux has it';
export const isRoot = process.getuid?.() === 0 ? 'root may write everywhere' : null;
export const notRoot = process.getuid?.() === 0 ? null : 'only root may do that';
