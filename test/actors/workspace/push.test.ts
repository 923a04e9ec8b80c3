import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { PushTarget, Workspace } from '../../../src/actors/workspace/port.ts';
import { createSharedWorkspace } from '../../../src/actors/workspace/worktrees/select-workspace.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import { anAttempt } from '../../contracts/workspace.ts';
import { openGitHub } from '../../support/forge/github.ts';
import { gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import { pathOf } from '../../support/needs.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const id = 'bd-a1' as TaskId;
const branch = 'agent/bd-a1/pr';
const never = new AbortController().signal;

const save = async (workspace: Workspace, text = 'new\n', number = 1) => {
  const { root } = await workspace.open(anAttempt(number));
  writeFileSync(join(root, 'b.txt'), text);
  return (await workspace.save(anAttempt(number), 'Change it'))?.commit ?? '';
};

/** A project with saved work, and its forge. */
const open = async () => {
  const project = makeRepository();
  const github = await openGitHub(project);
  const workspace = await worktreesOf(project, temporaryFolder());
  const commit = await save(workspace);
  const target = { url: github.remote, branch, seen: null, token: github.token };
  const push = (more: Partial<PushTarget> = {}, attempt = 1) =>
    workspace.push(id, attempt, { ...target, ...more }, never);
  return { project, github, workspace, commit, target, push };
};

test('saved work is pushed to a branch of the forge, and nothing else', async () => {
  const { github, commit, push } = await open();

  expect(await push()).toMatchObject({ status: 'pushed', commit });

  expect(github.bare.tip(branch)).toBe(commit);
  expect(gitIn(github.bare.dir, 'for-each-ref', '--format=%(refname)').split('\n')).toEqual([
    `refs/heads/${branch}`,
    'refs/heads/main',
  ]);
});

test('pushed again, after the answer was lost, it is pushed', async () => {
  const { commit, push } = await open();
  await push();

  expect(await push()).toMatchObject({ status: 'pushed', commit });
});

test('the next attempt replaces the commit that was seen', async () => {
  const { github, workspace, commit, push } = await open();
  await push();
  const second = await save(workspace, 'newer\n', 2);

  expect(await push({ seen: commit }, 2)).toMatchObject({ status: 'pushed', commit: second });
  expect(github.bare.tip(branch)).toBe(second);
});

test.each(['a commit that was seen', 'nothing'])(
  "a person's commit is not replaced after %s was seen",
  async (what) => {
    const { github, commit, push } = await open();
    if (what !== 'nothing') await push();
    const theirs = github.bare.commit(branch, 'b.txt', 'by hand\n');

    const pushed = await push({ seen: what === 'nothing' ? null : commit });

    expect(pushed).toEqual({ status: 'moved', commit: theirs });
    expect(github.bare.tip(branch)).toBe(theirs);
  },
);

test('a branch that was removed is not made again', async () => {
  const { github, commit, push } = await open();
  await push();
  gitIn(github.bare.dir, 'update-ref', '-d', `refs/heads/${branch}`);

  expect(await push({ seen: commit })).toEqual({
    status: 'refused',
    why: `the branch ${branch} was removed from ${github.remote}`,
  });
});

describe('it is refused', () => {
  test('with a wrong token, without saying it', async () => {
    const { push } = await open();

    const pushed = await push({ token: 'ghp_wrong' });

    expect(pushed).toEqual({
      status: 'refused',
      why: expect.stringContaining('does not accept the token'),
      lacksRight: true,
    });
    expect(JSON.stringify(pushed)).not.toContain('ghp_wrong');
  });

  test('without a token where one is needed', async () => {
    const { push } = await open();

    expect(await push({ token: null })).toMatchObject({
      why: expect.stringContaining('asks for a login; give a token'),
    });
  });

  test('without the right to push', async () => {
    const { github, push } = await open();
    github.state.mayPush = false;

    expect(await push()).toMatchObject({
      status: 'refused',
      why: expect.stringMatching(/the token may not push to .*contents: write/),
    });
  });

  test('by a protected branch, with what the forge says', async () => {
    const { github, push } = await open();
    github.person.protect(branch, []);

    expect(await push()).toMatchObject({
      status: 'refused',
      why: expect.stringMatching(/is protected: GH006: Protected branch update failed/),
    });
  });

  test('where there is no repository', async () => {
    const { github, push } = await open();
    const url = github.remote.replace('/acme/', '/others/');

    expect(await push({ url })).toMatchObject({
      status: 'refused',
      why: expect.stringContaining('there is no repository'),
    });
  });

  test.each([
    ['/tmp/shop.git', 'no address'],
    ['file:///tmp/shop.git', 'file://'],
    ['ext::sh -c id', 'ext'],
    ['http://forge.example/shop.git', 'http:// is not used'],
    ['https://mary:secret@forge.example/shop.git', 'holds a password'],
    ['ssh://-oProxyCommand=id/shop.git', 'no server'],
  ])('for the address %s', async (url, why) => {
    const { push } = await open();

    expect(await push({ url })).toMatchObject({
      status: 'refused',
      why: expect.stringContaining(why),
    });
  });
});

test('a forge that does not answer is an error', async () => {
  const { push } = await open();

  await expect(push({ url: 'http://127.0.0.1:9/acme/shop.git' })).rejects.toThrow(
    'http://127.0.0.1:9/acme/shop.git cannot be written',
  );
});

test('a redirect to another host is not followed', async () => {
  const { github, push } = await open();
  const other = await openGitHub(makeRepository());
  github.state.gitMovedTo = other.remote;

  await expect(push()).rejects.toThrow('cannot be written');
  expect(other.heard).toEqual([]);
});

test('there is nothing to push before work is saved, and where agents share a folder', async () => {
  const { project, workspace, target } = await open();
  await workspace.open(anAttempt(1, 'bd-b2'));
  const shared = createSharedWorkspace({ projectRoot: project });

  expect(await workspace.push('bd-b2' as TaskId, 1, target, never)).toBe(null);
  expect(await workspace.push('bd-c3' as TaskId, 1, target, never)).toBe(null);
  expect(await shared.push(id, 1, target, never)).toBe(null);
});

describe('the token', () => {
  /** Git that notes its arguments, those of the programs it starts, and its configuration. */
  const spying = async () => {
    const { project, target } = await open();
    const folder = temporaryFolder();
    const [seen, trace] = [join(folder, 'seen'), join(folder, 'trace')];
    const script = `#!/bin/sh
tr '\\0' ' ' < /proc/$$/cmdline >> ${seen}
echo "
VALUE=$GIT_CONFIG_VALUE_0 HOME=$HOME" >> ${seen}
GIT_TRACE=${trace} exec ${pathOf('git')} "$@"
`;
    writeFileSync(join(folder, 'git'), script, { mode: 0o755 });
    const environment = { PATH: `${folder}:${process.env['PATH']}` };
    const more = { environment, userEnv: { HOME: '/home/mary' } };
    const workspace = await worktreesOf(project, temporaryFolder(), [], more);
    await save(workspace, 'spied\n', 2);
    writeFileSync(seen, '');
    const push = async (given: Partial<PushTarget>) => {
      await workspace.push(id, 2, { ...target, ...given }, never).catch(() => {});
      return { seen: readFileSync(seen, 'utf8'), trace: readFileSync(trace, 'utf8') };
    };
    const secrets = [
      target.token,
      Buffer.from(`x-access-token:${target.token}`).toString('base64'),
    ];
    return { push, secrets };
  };

  test('is in no argument of git and of what git starts', async () => {
    const { push, secrets } = await spying();

    const { seen, trace } = await push({});

    const args = `${seen.replace(/^VALUE=.*$/gm, '')}${trace}`;
    expect(trace).toContain('git remote-http');
    for (const secret of secrets) expect(args).not.toContain(secret);
    expect(seen).toContain(`VALUE=Authorization: Basic ${secrets[1]} HOME=/nonexistent`);
    // The calls that read the repository do not have it.
    expect(seen.match(/^VALUE=Authorization/gm)).toHaveLength(1);
  });

  test('does not go by ssh, which has the keys of the user', async () => {
    const { push, secrets } = await spying();

    const { seen, trace } = await push({ url: 'nobody@127.0.0.1:shop.git' });

    expect(`${seen}${trace}`).toContain('ssh://nobody@127.0.0.1/shop.git');
    expect(seen).toContain('HOME=/home/mary');
    for (const secret of secrets) expect(`${seen}${trace}`).not.toContain(secret);
  });
});
