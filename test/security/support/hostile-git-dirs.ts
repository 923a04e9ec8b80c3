import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { temporaryFolder } from '../../support/temporary.ts';
import { git, makeHostileGitDir, type Plan, put } from './plan.ts';
import type { Vector, Vectors } from './vector.ts';

/** Moves a part of the git dir to another place and links to it from where it was. */
const linked = (path: string, refused: RegExp): Vector => ({
  plant: ({ gitDir, outside }) => {
    const [from, to] = [join(gitDir, path), join(outside, 'moved')];
    if (existsSync(from)) renameSync(from, to);
    else {
      mkdirSync(dirname(from), { recursive: true });
      mkdirSync(to);
    }
    symlinkSync(to, from);
  },
  refused,
});

const pipe = (path: string): Vector => ({
  plant: ({ gitDir }) => {
    rmSync(join(gitDir, path), { force: true });
    mkdirSync(dirname(join(gitDir, path)), { recursive: true });
    execFileSync('mkfifo', [join(gitDir, path)]);
  },
  refused: new RegExp(`${path}.*not a plain file`),
});

const extension = (
  name: string,
  value: string,
  refused = new RegExp(`extensions\\.${name}.*not supported`, 'i'),
) => ({
  plant: ({ gitDir }: Plan) =>
    appendFileSync(
      join(gitDir, 'config'),
      `[core]\n\trepositoryformatversion = 1\n[extensions]\n\t${name} = ${value}\n`,
    ),
  refused,
});

const noPlainFile = /not a plain file or folder/;

/** A blob of the first commit is not there; git would ask the remote for it. */
const dropBlob = ({ project, gitDir }: Plan): void => {
  const hash = git(project, ['rev-parse', 'HEAD:lib/b.txt']);
  rmSync(join(gitDir, 'objects', hash.slice(0, 2), hash.slice(2)), { force: true });
};

/** What a git dir may be that is no ordinary one; each is refused by its reason. */
export const hostileGitDirs: Vectors = {
  'a partial clone whose remote is a program, with a blob missing': {
    plant: (plan) => {
      dropBlob(plan);
      appendFileSync(
        join(plan.gitDir, 'config'),
        `[remote "origin"]\n\turl = ${plan.project}\n\tpromisor = true\n\tpartialclonefilter = blob:none\n\tuploadpack = ${plan.trap}\n[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = origin\n`,
      );
    },
    refused: /partial clone|lacks objects/,
  },
  'a promisor that no extension names, with a blob missing': {
    plant: (plan) => {
      dropBlob(plan);
      appendFileSync(
        join(plan.gitDir, 'config'),
        `[remote "origin"]\n\turl = ext::${plan.trap}\n\tpromisor = true\n\tuploadpack = ${plan.trap}\n`,
      );
    },
    refused: /partial clone|lacks objects/,
  },
  'a blob missing': { plant: dropBlob, refused: /git fsck/ },
  'core.worktree elsewhere': {
    plant: ({ gitDir, outside }) =>
      appendFileSync(join(gitDir, 'config'), `[core]\n\tworktree = ${join(outside, 'folder')}\n`),
    refused: /core\.worktree/,
  },
  'commondir in a git dir': {
    plant: (plan) => {
      const elsewhere = join(temporaryFolder(), 'evil');
      makeHostileGitDir(plan, elsewhere);
      writeFileSync(join(plan.gitDir, 'commondir'), `${elsewhere}\n`);
    },
    refused: /commondir/,
  },
  'a .git file that leads to the git dir of somebody else': {
    plant: (plan) => {
      const elsewhere = join(temporaryFolder(), 'evil');
      makeHostileGitDir(plan, elsewhere);
      rmSync(plan.gitDir, { recursive: true });
      writeFileSync(plan.gitDir, `gitdir: ${elsewhere}\n`);
    },
    refused: /\.git/,
  },
  'objects linked': linked('objects', noPlainFile),
  'a pack folder linked': linked('objects/pack', noPlainFile),
  'every objects/xx linked': {
    plant: ({ gitDir, outside }) => {
      for (let n = 0; n < 256; n += 1) {
        const [name, to] = [n.toString(16).padStart(2, '0'), join(outside, `moved-${n}`)];
        const from = join(gitDir, 'objects', name);
        if (existsSync(from)) cpSync(from, to, { recursive: true });
        else mkdirSync(to);
        rmSync(from, { recursive: true, force: true });
        symlinkSync(to, from);
      }
    },
    refused: noPlainFile,
  },
  'refs linked': linked('refs', noPlainFile),
  'refs/heads/agent linked': linked('refs/heads/agent', /refs\/heads\/agent|not a plain/),
  'a folder of the branches of a task linked': linked(
    'refs/heads/agent/bd-a1',
    /not a plain|agent\/bd-a1/,
  ),
  'HEAD linked': linked('HEAD', noPlainFile),
  'config linked': linked('config', noPlainFile),
  'the index linked': linked('index', noPlainFile),
  'logs linked': linked('logs', noPlainFile),
  'config as a pipe': pipe('config'),
  'config.worktree as a pipe': pipe('config.worktree'),
  'alternates as a pipe': pipe('objects/info/alternates'),
  'all objects behind alternates': {
    plant: ({ gitDir }) => {
      const other = join(temporaryFolder(), 'objects');
      cpSync(join(gitDir, 'objects'), other, { recursive: true });
      for (const name of readdirSync(join(gitDir, 'objects')))
        if (name.length === 2) rmSync(join(gitDir, 'objects', name), { recursive: true });
      put(gitDir, { 'objects/info/alternates': `${other}\n` });
    },
    refused: /borrows objects from/,
  },
  'alternates that name a folder with secrets': {
    plant: ({ gitDir, outside }) => put(gitDir, { 'objects/info/alternates': `${outside}\n` }),
    refused: /borrows objects from/,
  },
  'HEAD as a pipe': pipe('HEAD'),
  'packed-refs as a pipe': pipe('packed-refs'),
  'the index as a pipe': pipe('index'),
  'a sparse checkout': {
    plant: ({ project }) => {
      git(project, ['sparse-checkout', 'set', '--sparse-index', 'lib']);
    },
    refused: /sparse/,
  },
  'a split index': {
    plant: ({ project }) => {
      git(project, ['update-index', '--split-index']);
    },
    refused: /split index/,
  },
  'refs in another form': extension('refStorage', 'reftable'),
  'an extension that nobody knows': extension('noSuchThing', 'true'),
};

const logLinked = (path: string): Vector => ({
  plant: ({ gitDir, outside }) => {
    rmSync(join(gitDir, path));
    symlinkSync(join(outside, 'secret'), join(gitDir, path));
  },
  refused: /logs\/|not a plain/,
});

/** What stands in the way of a merge alone. */
export const hostileLogs: Vectors = {
  'the log of HEAD linked outside': logLinked('logs/HEAD'),
  'the log of the branch linked outside': logLinked('logs/refs/heads/main'),
  'the logs of all branches linked outside': {
    plant: ({ gitDir, outside }) => {
      rmSync(join(gitDir, 'logs/refs'), { recursive: true });
      symlinkSync(join(outside, 'folder'), join(gitDir, 'logs/refs'));
    },
    refused: /logs\/|not a plain/,
  },
  'the log of the branch a second name of a file outside': {
    plant: ({ gitDir, outside }) => {
      rmSync(join(gitDir, 'logs/refs/heads/main'));
      linkSync(join(outside, 'secret'), join(gitDir, 'logs/refs/heads/main'));
    },
    refused: /logs\/|not a plain/,
  },
};
