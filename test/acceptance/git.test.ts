import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Workspace } from '../../src/actors/workspace/port.ts';
import type { TaskId } from '../../src/machines/task.ts';
import { gitIn, makeRepository, worktreesOf } from '../support/git.ts';
import { isLong } from '../support/long.ts';
import { bash, finish, startSystem, untilStatus } from '../support/running.ts';
import { temporaryFolder } from '../support/temporary.ts';

interface Plan {
  /** A program that leaves a mark each time somebody runs it. */
  readonly trap: string;
  readonly project: string;
  /** Another repository, whose settings run the trap. */
  readonly evil: string;
}

interface Vector {
  /** The files of the repository before any attempt. */
  readonly before?: (plan: Plan) => unknown;
  /** Runs the agent's commands in its folder, outside the sandbox. */
  readonly agent?: (plan: Plan) => string;
}

const set = (...pairs: readonly (readonly [string, string?])[]): Vector => ({
  before: ({ project, trap }) => {
    for (const [key, value = trap] of pairs) gitIn(project, 'config', key, value);
    writeFileSync(join(project, '.git', 'info', 'attributes'), '* filter=x diff=x merge=x\n');
  },
});

/** The settings that our own git calls override. */
const overruled: Readonly<Record<string, Vector>> = {
  'core.fsmonitor': set(['core.fsmonitor']),
  'core.hooksPath': {
    before: ({ project, trap }) => {
      for (const hook of [
        'post-checkout',
        'pre-commit',
        'post-commit',
        'post-merge',
        'reference-transaction',
      ])
        for (const folder of [join(project, 'hooks'), join(project, '.git', 'hooks')]) {
          mkdirSync(folder, { recursive: true });
          cpSync(trap, join(folder, hook));
        }
      gitIn(project, 'config', 'core.hooksPath', join(project, 'hooks'));
    },
  },
  'diff.external': set(['diff.external']),
  'core.sshCommand': set(['core.sshCommand'], ['remote.origin.url', 'ssh://localhost/x']),
  gpg: set(
    ['gpg.program'],
    ['commit.gpgSign', 'true'],
    ['tag.gpgSign', 'true'],
    ['log.showSignature', 'true'],
  ),
  alias: set(
    ...['status', 'diff', 'add', 'commit', 'merge'].map(
      (name) => [`alias.${name}`, '!trap'] as const,
    ),
    ['core.editor'],
    ['core.pager'],
    ['credential.helper'],
  ),
};

const vectors: Readonly<Record<string, Vector>> = {
  ...(isLong
    ? overruled
    : {
        [Object.keys(overruled).join(', ')]: {
          before: (plan) => Object.values(overruled).map(({ before }) => before?.(plan)),
        },
      }),
  'a command of a diff': set(['diff.x.command']),
  textconv: set(['diff.x.textconv']),
  'filter clean and smudge': set(
    ['filter.x.clean'],
    ['filter.x.smudge'],
    ['filter.x.required', 'true'],
  ),
  'filter process': set(['filter.x.process']),
  'a .git that leads elsewhere': {
    agent: ({ evil }) => `rm -rf .git && echo "gitdir: ${evil}/.git" > .git`,
  },
  'an embedded bare repository': {
    agent: ({ evil }) =>
      `mkdir -p deep && cp -r ${evil}/.git/. deep/ && cp -r ${evil}/.git/. . && git config -f config core.bare true`,
  },
  'settings of a submodule': {
    agent: ({ evil }) =>
      `git -c protocol.file.allow=always submodule --quiet add ${evil} sub && cp ${evil}/.git/config sub/.git-config && git -C sub config core.fsmonitor "$(git -C ${evil} config core.fsmonitor)" && git -C sub config core.hooksPath ${evil}/.git/hooks && echo dirty > sub/a.txt`,
  },
  'a filter of a submodule': {
    before: ({ project, evil }) => {
      gitIn(
        project,
        '-c',
        'protocol.file.allow=always',
        'submodule',
        '--quiet',
        'add',
        evil,
        'sub',
      );
      gitIn(project, 'commit', '--quiet', '-m', 'add a submodule');
    },
    agent: ({ trap }) =>
      `rm -rf sub && git init --quiet sub && cd sub && echo one > f && git add f && git -c user.name=x -c user.email=x commit --quiet -m x && echo '* filter=x' > .git/info/attributes && git config filter.x.clean ${trap} && echo two > f && cd ..`,
  },
  commondir: {
    agent: ({ evil }) => `echo ${evil}/.git > "$(git rev-parse --absolute-git-dir)/commondir"`,
  },
  'a driver of merges': set(['merge.x.driver']),
};

const plant = (): Plan => {
  const [project, evil, folder] = [makeRepository(), makeRepository(), temporaryFolder()];
  const trap = join(folder, 'trap');
  writeFileSync(trap, `#!/bin/sh\necho "$0 $*" >> ${folder}/sprung\nexit 1\n`);
  chmodSync(trap, 0o755);
  for (const key of ['core.fsmonitor', 'diff.external', 'core.sshCommand', 'gpg.program'])
    gitIn(evil, 'config', key, trap);
  for (const hook of ['post-checkout', 'pre-commit', 'post-commit', 'reference-transaction'])
    cpSync(trap, join(evil, '.git', 'hooks', hook));
  return { trap, project, evil };
};

test.each(Object.entries(vectors))(
  'A23 a whole task runs no program that the repository names: %s',
  { tags: ['slow'] },
  async (_, vector) => {
    const plan = plant();
    const sprung = join(plan.trap, '..', 'sprung');
    vector.before?.(plan);
    let opened: Workspace | null = null as Workspace | null;
    const turns = [
      bash(`${vector.agent?.(plan) ?? 'true'}; echo changed > a.txt; rm -f ${sprung}`),
      finish(),
    ];
    const running = await startSystem({
      root: plan.project,
      workspace: async (root, stateDir) => {
        opened = await worktreesOf(root, join(stateDir, 'worktrees'));
        return opened;
      },
      turns,
      options: { merge: 'squash' },
    });
    const { task_id: id } = await running.service.create({ description: 'Change a' });

    await running.service.execute({ task: id, role: 'engineer', options: {} });
    const { status, error } = await untilStatus(running, id, 'complete', 'failed');
    await opened?.diff(id as TaskId, null);

    expect(status, error?.message).toBe('complete');
    expect(existsSync(sprung) ? readFileSync(sprung, 'utf8') : '').toBe('');
  },
);
