import { appendFileSync, cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../../support/temporary.ts';
import { allToTheFilter, git, hostileSettings, type Plan, put } from './plan.ts';
import type { Vector, Vectors } from './vector.ts';

const hooks = [
  ...[
    'applypatch-msg',
    'pre-applypatch',
    'post-applypatch',
    'pre-commit',
    'pre-merge-commit',
    'prepare-commit-msg',
  ],
  ...[
    'commit-msg',
    'post-commit',
    'pre-rebase',
    'post-checkout',
    'post-merge',
    'pre-push',
    'pre-auto-gc',
  ],
  ...['post-rewrite', 'post-index-change', 'reference-transaction', 'fsmonitor-watchman'],
];

/** A text for the configuration of the repository; every file is sent to its drivers. */
const set = (text: (plan: Plan) => string): Vector => ({
  plant: (plan) => {
    put(plan.gitDir, { 'info/attributes': '* diff=x merge=x\n' });
    appendFileSync(join(plan.gitDir, 'config'), `${text(plan)}\n`);
  },
});

/** Nobody allowed this filter: the work is saved as it stands, and not merged without it. */
const filtered = (text: (plan: Plan) => string): Vector => ({
  plant: (plan) => {
    put(plan.gitDir, { 'info/attributes': allToTheFilter });
    appendFileSync(join(plan.gitDir, 'config'), `${text(plan)}\n`);
  },
  refused: /needs the filter "x"/,
});

const included = (condition: string, before = ''): Vector =>
  set((plan) => {
    const file = join(temporaryFolder(), 'included');
    writeFileSync(file, hostileSettings(plan.trap));
    return `${before}[includeIf "${condition}"]\n\tpath = ${file}`;
  });

const plantHooks = (folder: string, { trap }: Plan): void => {
  mkdirSync(folder, { recursive: true });
  for (const hook of hooks) cpSync(trap, join(folder, hook));
};

/** What a repository names in its own settings; the work is done all the same. */
export const hostileConfiguration: Vectors = {
  // This one uses git itself, so it comes before the settings that make it run something.
  'a replace ref and a graft': {
    plant: ({ project, gitDir }) => {
      const head = git(project, ['rev-parse', 'HEAD']);
      const blob = git(project, ['hash-object', '-w', '--stdin'], 'replaced\n');
      const tree = git(project, ['mktree'], `100644 blob ${blob}\treplaced.txt\n`);
      const commit = git(project, ['commit-tree', tree, '-m', 'replaced']);
      git(project, ['update-ref', `refs/replace/${head}`, commit]);
      put(gitDir, { 'info/grafts': `${head}\n` });
    },
  },
  'includeIf onbranch': included('onbranch:**'),
  'includeIf gitdir': included('gitdir:**'),
  'includeIf hasconfig': included(
    'hasconfig:remote.*.url:**',
    '[remote "origin"]\n\turl = https://localhost/x\n',
  ),
  'config.worktree': {
    plant: ({ gitDir, trap }) => {
      appendFileSync(join(gitDir, 'config'), '[extensions]\n\tworktreeConfig = true\n');
      writeFileSync(join(gitDir, 'config.worktree'), hostileSettings(trap));
    },
  },
  'a merge driver whose name has a space': set(
    ({ trap }) =>
      `[merge]\n\tdefault = "a b"\n[merge "a b"]\n\tdriver = ${trap}\n[merge "x"]\n\tdriver = ${trap}`,
  ),
  'textconv and the command of a diff': set(
    ({ trap }) => `[diff "x"]\n\ttextconv = ${trap}\n\tcommand = ${trap}`,
  ),
  'diff.external': set(({ trap }) => `[diff]\n\texternal = ${trap}`),
  '17 hooks': { plant: (plan) => plantHooks(join(plan.gitDir, 'hooks'), plan) },
  'core.hooksPath': {
    plant: (plan) => {
      const folder = temporaryFolder();
      plantHooks(folder, plan);
      appendFileSync(join(plan.gitDir, 'config'), `[core]\n\thooksPath = ${folder}\n`);
    },
  },
  'core.fsmonitor': set(({ trap }) => `[core]\n\tfsmonitor = ${trap}\n\tfsmonitorHookVersion = 2`),
  'core.sshCommand, pager, editor, askPass': set(
    ({ trap }) =>
      `[core]\n\tsshCommand = ${trap}\n\tpager = ${trap}\n\teditor = ${trap}\n\taskPass = ${trap}`,
  ),
  'gpg, credential.helper, packObjectsHook': set(
    ({ trap }) =>
      `[gpg]\n\tprogram = ${trap}\n[commit]\n\tgpgSign = true\n[credential]\n\thelper = ${trap}\n[uploadpack]\n\tpackObjectsHook = ${trap}`,
  ),
  'core.alternateRefsCommand': set(({ trap }) => `[core]\n\talternateRefsCommand = ${trap}`),
  'aliases of all commands': set(({ trap }) =>
    ['add', 'diff', 'read-tree', 'update-index', 'merge-tree', 'fast-import', 'write-tree']
      .map((name) => `[alias]\n\t${name} = !${trap}`)
      .join('\n'),
  ),
};

/** Filters that the repository names for all files. */
export const hostileFilters: Vectors = {
  'filter clean and smudge': filtered(
    ({ trap }) => `[filter "x"]\n\tclean = ${trap}\n\tsmudge = ${trap}\n\trequired = true`,
  ),
  'filter process': filtered(({ trap }) => `[filter "x"]\n\tprocess = ${trap}`),
  'filters in a committed .gitattributes': {
    plant: ({ project }) => {
      put(project, { 'lib/.gitattributes': '* filter=x diff=x merge=x\n' });
      git(project, ['-c', 'filter.x.clean=cat', 'add', '--all']);
      git(project, ['-c', 'filter.x.clean=cat', 'commit', '--quiet', '-m', 'attributes']);
    },
    agent: (folder) => put(folder, { 'lib/b.txt': 'changed\n' }),
    refused: /needs the filter "x"/,
  },
};
