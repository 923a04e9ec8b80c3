import { execFileSync } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** A repository with one commit, of `a.txt`; `makeRepository` copies it. */
    readonly repository: string;
  }
}

export const setup = (project: TestProject): (() => void) => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'agent-test-')));
  const git = (...args: readonly string[]): void =>
    void execFileSync('git', args, { cwd: folder, stdio: 'ignore' });
  git('init', '--quiet', '--initial-branch=main');
  git('config', 'user.name', 'Amy');
  git('config', 'user.email', 'amy@localhost');
  writeFileSync(join(folder, 'a.txt'), 'one\ntwo\nthree\n');
  git('add', 'a.txt');
  git('commit', '--quiet', '-m', 'change a.txt');
  project.provide('repository', folder);
  return () => rmSync(folder, { recursive: true, force: true });
};
