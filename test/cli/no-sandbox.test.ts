import { spawnSync } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { expect } from 'vitest';
import { openProject } from '../support/cli.ts';
import { commitIn, gitIn } from '../support/git.ts';
import { noSandbox, testUnless } from '../support/needs.ts';

/** A machine without bubblewrap, and one without /proc, as bubblewrap can simulate them. */

const bwrap = '/usr/bin/bwrap';
const shown = [bwrap, '--dev-bind', '/', '/'];
const noMachine =
  spawnSync(bwrap, [...shown.slice(1), 'true']).status === 0
    ? null
    : 'bubblewrap cannot show another machine here';
const kept = ['/usr/bin/sh', '/usr/bin/git', process.execPath].map((path) => realpathSync(path));
const withoutBubblewrap = [
  ...shown,
  '--tmpfs',
  '/usr/bin',
  ...kept.flatMap((path) => ['--ro-bind', path, path.endsWith('dash') ? '/usr/bin/sh' : path]),
];
const withoutProc = [...shown, '--tmpfs', '/proc'];

const openRepository = (config: object = {}) => {
  const project = openProject({
    api: { backend: 'scripted' },
    sandbox: {},
    workspace: {},
    ...config,
  });
  gitIn(project.root, 'init', '--quiet', '--initial-branch=main');
  gitIn(project.root, 'config', 'user.name', 'Amy');
  gitIn(project.root, 'config', 'user.email', 'amy@localhost');
  commitIn(project.root, 'a.txt', 'one\n');
  return project;
};

const runOf = async (config: object, through: readonly string[]) => {
  const project = openRepository(config);
  return project.collect(project.start('agent', ['engineer', 'do it'], {}, through));
};
const unheld = { sandbox: { mode: 'off' }, workspace: { mode: 'shared' } };

testUnless(noSandbox ?? noMachine).each([
  ['bubblewrap', withoutBubblewrap, {}, /bubblewrap is not installed .*apt install bubblewrap/],
  ['/proc', withoutProc, {}, /bubblewrap cannot be used here.*in a container with seccomp=/],
  ['/proc, in worktrees', withoutProc, { sandbox: { mode: 'off' } }, /\/proc\/self\/fd/],
])(
  'without %s a run is refused, and the refusal says which settings allow it',
  { tags: ['slow'] },
  async (_, through, config, why) => {
    const refused = await runOf(config, through);

    expect(refused.code).toBe(78);
    expect(refused.err).toMatch(why);
    expect(refused.err).toContain('set sandbox.mode: off and workspace.mode: shared');
  },
);

testUnless(noSandbox ?? noMachine).each([
  ['bubblewrap', withoutBubblewrap],
  ['/proc', withoutProc],
])(
  'without %s a run works with the settings that the refusal names',
  { tags: ['slow'] },
  async (_, through) => {
    expect(await runOf(unheld, through)).toMatchObject({
      code: 0,
      out: expect.stringContaining('complete'),
    });
  },
);
