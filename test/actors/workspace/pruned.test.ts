import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findGit } from '../../../src/actors/workspace/git/git.ts';
import { anAttempt } from '../../contracts/workspace.ts';
import { gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import { temporaryFolder } from '../../support/temporary.ts';

/**
 * The user removes objects that no branch has, as `git gc --prune=now` does, in the middle of a
 * save.
 */

const git = findGit(process.env['PATH'] ?? '') ?? '';

/** A git that does something once, before or after a command of ours. */
const gitWith = (
  command: string,
  script: { readonly before?: string; readonly after?: string },
) => {
  const folder = temporaryFolder();
  const once = (line: string): string =>
    `case " $* " in *" ${command} "*) [ ! -e ${folder}/on ] || { rm ${folder}/on; ${line}; };; esac`;
  const { before = ':', after } = script;
  const end =
    after === undefined ? `exec ${git} "$@"` : `${git} "$@"; code=$?; ${once(after)}; exit $code`;
  mkdirSync(join(folder, 'bin'));
  writeFileSync(
    join(folder, 'bin', 'git'),
    `#!/bin/sh\n${after === undefined ? once(before) : ''}\n${end}\n`,
  );
  chmodSync(join(folder, 'bin', 'git'), 0o755);
  return { environment: { PATH: join(folder, 'bin') }, on: join(folder, 'on') };
};

const save = async (project: string, { environment, on }: ReturnType<typeof gitWith>) => {
  const workspace = await worktreesOf(project, temporaryFolder(), [], { environment });
  const { root } = await workspace.open(anAttempt());
  for (const name of ['b', 'c', 'd']) writeFileSync(join(root, `${name}.txt`), `${name}\n`);
  writeFileSync(on, '');
  return workspace.save(anAttempt(), 'Change it');
};

test.each([
  ['before the tree is made', 'write-tree', { before: 'prune' }],
  ['before the commit is made', 'commit-tree', { before: 'prune' }],
  ['before the branch is moved', 'update-ref', { before: 'prune' }],
  // Found to be needless before the branch was moved, and removed after it.
  ['when the branch was moved', 'update-ref', { after: 'remove' }],
] as const)(
  'objects that are pruned %s are made again, and nothing is lost',
  async (_, command, when) => {
    const project = makeRepository();
    const prune = `env -u GIT_DIR -u GIT_INDEX_FILE ${git} -C ${project} prune --expire=now`;
    const remove = `rm -f $(for o in $(${git} rev-list --objects --no-object-names refs/heads/agent/bd-a1/1 --not HEAD | cut -c1-40); do echo ${project}/.git/objects/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-); done)`;
    const program = gitWith(command, 'before' in when ? { before: prune } : { after: remove });

    const saved = await save(project, program);

    expect(existsSync(program.on)).toBe(false);
    expect(saved).toMatchObject({ branch: 'agent/bd-a1/1', files: 3, notes: [] });
    expect(gitIn(project, 'show', 'agent/bd-a1/1:c.txt')).toBe('c');
    expect(
      execFileSync(git, ['fsck', '--full', '--no-dangling'], { cwd: project, encoding: 'utf8' }),
    ).toBe('');
    expect(readFileSync(join(project, 'a.txt'), 'utf8')).toContain('one');
  },
);
