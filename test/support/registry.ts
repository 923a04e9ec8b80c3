import { execa } from 'execa';

const ping = ['ping', '--fetch-retries=0'];

/** Why tests that install packages are skipped; null: they run. */
export const noRegistry =
  (await execa('npm', ping, { reject: false, timeout: 20_000 })).exitCode === 0
    ? null
    : 'the registry of npm cannot be reached';

/** Runs a program of packages that are installed for it, outside of the project. */
export const runPackage = (packages: readonly string[], line: readonly string[], cwd: string) =>
  execa('npx', ['--yes', ...packages.flatMap((each) => ['--package', each]), '--', ...line], {
    cwd,
    all: true,
    timeout: 200_000,
    reject: false,
  });
