import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { makeRepository } from '../../support/git.ts';
import { temporaryFolder } from '../../support/temporary.ts';

/**
 * What an attacker has: a program that marks each time that somebody runs it, and a folder that
 * nobody may touch.
 */
export interface Plan {
  readonly project: string;
  /** The git dir of the project. */
  readonly gitDir: string;
  /** The folder of the worktrees. */
  readonly state: string;
  readonly trap: string;
  readonly outside: string;
  /** Who ran the trap, a line each; empty when nobody did. */
  marks(): string;
}

/** Writes files below a folder, making what is missing above them. */
export const put = (folder: string, files: Readonly<Record<string, string | Buffer>>): void => {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
};

/**
 * Git in a repository that is not hostile yet, or for a command that obeys none of its settings.
 */
/** Without the settings of this machine: an installed git-lfs brings a filter. */
const env = { ...process.env, GIT_CONFIG_NOSYSTEM: '1' };
export const git = (folder: string, args: readonly string[], input = ''): string =>
  execFileSync('git', args, {
    cwd: folder,
    encoding: 'utf8',
    input,
    env,
    stdio: ['pipe', 'pipe', 'ignore'],
  }).trimEnd();

/** Settings that each make git run the trap, as the text of a configuration file. */
export const hostileSettings = (trap: string): string =>
  [
    `[core]\n\tfsmonitor = ${trap}\n\tsshCommand = ${trap}\n\tpager = ${trap}\n\teditor = ${trap}\n\taskPass = ${trap}`,
    `\talternateRefsCommand = ${trap}\n\tgitProxy = ${trap}`,
    `[filter "x"]\n\tclean = ${trap}\n\tsmudge = ${trap}\n\trequired = true`,
    `[diff]\n\texternal = ${trap}\n[diff "x"]\n\tcommand = ${trap}\n\ttextconv = ${trap}`,
    `[merge]\n\tdefault = "a b"\n[merge "a b"]\n\tdriver = ${trap}`,
    `[gpg]\n\tprogram = ${trap}\n[commit]\n\tgpgSign = true\n[credential]\n\thelper = ${trap}`,
    `[uploadpack]\n\tpackObjectsHook = ${trap}`,
    '',
  ].join('\n');

export const allToTheFilter = '* filter=x diff=x\n';

/**
 * A repository whose settings and hooks run the trap, as a folder that can be put anywhere as
 * `.git`.
 */
export const makeHostileGitDir = (plan: Plan, at: string): void => {
  cpSync(join(plan.gitDir), at, { recursive: true });
  const settings = hostileSettings(plan.trap);
  writeFileSync(
    join(at, 'config'),
    `[core]\n\trepositoryformatversion = 0\n\tbare = false\n${settings}`,
  );
  put(at, { 'info/attributes': allToTheFilter });
  for (const hook of [
    'post-index-change',
    'pre-commit',
    'reference-transaction',
    'post-checkout',
  ]) {
    put(at, { [`hooks/${hook}`]: '' });
    cpSync(plan.trap, join(at, 'hooks', hook));
  }
};

/** A project with a few files in one commit, with settings that are not hostile yet. */
export const makePlan = (): Plan => {
  const [project, state, own, outside] = [
    makeRepository(),
    temporaryFolder(),
    temporaryFolder(),
    temporaryFolder(),
  ];
  put(project, {
    'lib/b.txt': 'b\n',
    'lib/c.txt': 'c\n',
    '.gitignore': 'ignored/\n',
    'run.sh': '#!/bin/sh\n',
  });
  chmodSync(join(project, 'run.sh'), 0o755);
  git(project, ['add', '--all']);
  git(project, ['commit', '--quiet', '-m', 'more files']);
  const [trap, marks] = [join(own, 'trap'), join(own, 'marks')];
  writeFileSync(trap, `#!/bin/sh\necho "$0 $*" >> ${marks}\ncat\n`);
  chmodSync(trap, 0o755);
  put(outside, { secret: 'canary', 'folder/secret': 'canary' });
  return {
    ...{ project, gitDir: join(project, '.git'), state, trap, outside },
    marks: () => (existsSync(marks) ? readFileSync(marks, 'utf8') : ''),
  };
};
