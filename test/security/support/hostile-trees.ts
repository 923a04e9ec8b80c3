import { execFileSync, spawn } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  cpSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { isLong } from '../../support/long.ts';
import { git, hostileSettings, makeHostileGitDir, type Plan, put } from './plan.ts';
import type { Vectors } from './vector.ts';

/** A submodule of which only the commit is known, as in a clone that did not ask for its files. */
const addGitlink = ({ project }: Plan, path: string): void => {
  const head = git(project, ['rev-parse', 'HEAD']);
  put(project, { '.gitmodules': `[submodule "${path}"]\n\tpath = ${path}\n\turl = ./nowhere\n` });
  git(project, ['update-index', '--add', '--cacheinfo', `160000,${head},${path}`]);
  git(project, ['add', '.gitmodules']);
  git(project, ['commit', '--quiet', '-m', `add the submodule ${path}`]);
};

const bytesNamed = (folder: string, name: string): Buffer =>
  Buffer.from(`${folder}/${name}`, 'latin1');
const utf8 = (name: string): string => Buffer.from(name, 'utf8').toString('latin1');

const oddNames = [
  'new\nline',
  '-rf',
  '--upload-pack=x',
  ':(top)x',
  'a\ttab',
  'a "quote"',
  "it's",
  'bad\xff\xfe',
  '*',
];

/** Names that git takes for its own on some file system. */
const refusedNames = [
  '.GIT',
  'git~1',
  '.git.',
  '.git ',
  utf8('.g\u200cit'),
  'back\\slash',
  '.git::$INDEX_ALLOCATION',
];

const [deep, many] = isLong ? [300, 3_000] : [100, 500];

const nested = {
  plant: (plan: Plan) => addGitlink(plan, 'sub'),
  agent: (folder: string, plan: Plan) => {
    makeHostileGitDir(plan, join(folder, 'sub', '.git'));
    put(folder, { 'sub/f.txt': 'inside a submodule\n' });
  },
  notSaved: ['sub'],
};

/** What agents put where git would trust it; the rest of their work is saved as it stands. */
export const nestedRepositories: Vectors = {
  'a .git folder in a submodule': nested,
  'a .git file in a folder of its own, its git dir beside it': {
    agent: (folder, plan) => {
      makeHostileGitDir(plan, join(folder, 'bare'));
      put(folder, { 'pointing/.git': 'gitdir: ../bare\n', 'pointing/g.txt': 'g\n' });
    },
    notSaved: ['bare', 'pointing/.git'],
    said: [/bare/],
  },
  'a new repository in a folder': {
    agent: (folder, plan) => {
      makeHostileGitDir(plan, join(folder, 'vendored', '.git'));
      put(folder, { 'vendored/h.txt': 'h\n', 'vendored/deep/i.txt': 'i\n' });
    },
    notSaved: ['vendored/.git'],
    said: [/vendored/],
  },
  'a .git of its own in place of ours': {
    agent: (folder, plan) => {
      rmSync(join(folder, '.git'), { recursive: true, force: true });
      makeHostileGitDir(plan, join(folder, '.git'));
    },
  },
  'the parts of a git dir at the top': {
    agent: (folder, plan) => {
      put(folder, {
        config: `[core]\n\tbare = true\n${hostileSettings(plan.trap)}`,
        'hooks/pre-commit': '#!/bin/sh\n',
      });
    },
  },
};

export const oddTrees: Vectors = {
  'odd names': {
    agent: (folder) => {
      for (const name of oddNames) writeFileSync(bytesNamed(folder, name), name);
    },
  },
  'names that git refuses': {
    agent: (folder) => {
      for (const name of refusedNames) {
        mkdirSync(bytesNamed(folder, `refused-${refusedNames.indexOf(name)}`));
        writeFileSync(bytesNamed(folder, `refused-${refusedNames.indexOf(name)}/${name}`), 'x');
      }
    },
    notSaved: refusedNames.map((name, index) => `refused-${index}/${name}`),
    said: [/refused-0/, /git~1/, /\.git\./, /slash/],
  },
  'names that differ in case or form alone': {
    agent: (folder) => put(folder, { README: '1', readme: '2', '\u00e9': '3', 'e\u0301': '4' }),
  },
  'pipes, sockets and devices': {
    agent: (folder) => {
      execFileSync('mkfifo', [join(folder, 'pipe'), join(folder, 'lib', 'pipe')]);
    },
    notSaved: ['pipe', 'lib/pipe'],
    said: [/pipe/],
  },
  '.gitignore and .gitattributes as pipes': {
    agent: (folder) => {
      mkdirSync(join(folder, 'piped'));
      execFileSync('mkfifo', [
        join(folder, 'piped', '.gitignore'),
        join(folder, 'piped', '.gitattributes'),
      ]);
      put(folder, { 'piped/kept.txt': 'kept\n' });
    },
    notSaved: ['piped/.gitignore', 'piped/.gitattributes'],
  },
  [`${deep} folders deep, ${many} names`]: {
    agent: (folder) => {
      const names = Array.from({ length: many }, (_, n) => [`many/${n}`, `${n}`] as const);
      put(folder, { ...Object.fromEntries(names), [`${'d/'.repeat(deep)}f`]: 'deep' });
    },
  },
  'same size and same time': {
    agent: (folder) => {
      const file = join(folder, 'lib', 'b.txt');
      const { atime, mtime } = statSync(file);
      writeFileSync(file, 'B\n');
      utimesSync(file, atime, mtime);
    },
  },
  'a mode alone': { agent: (folder) => chmodSync(join(folder, 'lib', 'c.txt'), 0o755) },
  'what the agent ignores by a rule of its own, and what it removes': {
    agent: (folder) => {
      put(folder, {
        '.gitignore': 'ignored/\n*.log\n!kept.log\n',
        'x.log': '',
        'kept.log': '',
        'ignored/x': '',
      });
      rmSync(join(folder, 'run.sh'));
    },
    notSaved: ['x.log', 'ignored'],
  },
};

/**
 * Trades two names as fast as it can, until it is ended: what is looked at first is another thing
 * when it is read.
 */
const trade = (one: string, other: string): (() => void) => {
  const line = `const { renameSync: r } = require('fs'); const [a, b] = process.argv.slice(1);
    for (;;) { try { r(a, a + '.x'); r(b, a); r(a, b); r(a + '.x', a); } catch {} }`;
  const child = spawn(process.execPath, ['-e', line, one, other], { stdio: 'ignore' });
  return () => void child.kill('SIGKILL');
};

/**
 * The attempt changes its folder while it is read; what is saved then is one of the two, and
 * nothing from outside.
 */
export const swapped: Vectors = {
  'a folder and a file that are traded for links while they are read': {
    meanwhile: (folder, { outside }) => {
      symlinkSync(join(outside, 'folder'), join(folder, '..', 'link-to-folder'));
      symlinkSync(join(outside, 'secret'), join(folder, '..', 'link-to-file'));
      put(folder, { 'traded/secret': 'own\n', 'traded.txt': 'own\n' });
      const stops = [
        trade(join(folder, 'traded'), join(folder, '..', 'link-to-folder')),
        trade(join(folder, 'traded.txt'), join(folder, '..', 'link-to-file')),
      ];
      return () => {
        for (const stop of stops) stop();
      };
    },
    notSaved: ['traded', 'traded.txt', 'traded.x', 'traded.txt.x'],
    // The link was in the place at the moment of reading: it is saved as a link, and not merged.
    mayBeRefused: /^traded\S* is a link that may lead out of the project/,
  },
};

const utf16 = (text: string): Buffer => Buffer.from(`\ufeff${text}`, 'utf16le');

/** How git turns what is saved into what stands in a folder, and back. */
export const conversions: Vectors = {
  'eol, ident, working-tree-encoding': {
    plant: ({ project }) => {
      const attributes = [
        '*.txt text',
        'dos.txt text eol=crlf',
        '*.u16 text working-tree-encoding=UTF-16LE-BOM',
        'id.c ident',
        'export.txt export-subst',
      ];
      put(project, {
        '.gitattributes': `${attributes.join('\n')}\n`,
        'dos.txt': 'one\r\ntwo\r\n',
        'wide.u16': utf16('one\n'),
        'id.c': '/* $Id$ */\n',
        'export.txt': '$Format:%H$\n',
      });
      git(project, ['add', '--all']);
      git(project, ['commit', '--quiet', '-m', 'conversions']);
    },
    agent: (folder) => {
      writeFileSync(join(folder, 'dos.txt'), 'one\r\ntwo\r\nthree\r\n');
      appendFileSync(join(folder, 'wide.u16'), 'two\n');
      appendFileSync(join(folder, 'id.c'), 'int x;\n');
      put(folder, { 'lib/new.txt': 'a\r\nb\r\n' });
    },
    savedAs: { 'dos.txt': 'one\ntwo\nthree\n', 'lib/new.txt': 'a\nb\n' },
    merged: {
      'dos.txt': Buffer.from('one\r\ntwo\r\nthree\r\n'),
      'lib/new.txt': Buffer.from('a\nb\n'),
      'wide.u16': utf16('one\ntwo\n'),
      'id.c': Buffer.from('/* $Id: e3aad293e208ed11ce33c3ec87dd1899326bd611 $ */\nint x;\n'),
    },
  },
};

const pointer = 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n';
const withLfs = ({ project, gitDir, trap }: Plan): void => {
  put(project, {
    '.gitattributes': '*.bin filter=lfs diff=lfs merge=lfs -text\n',
    'x.bin': pointer,
  });
  git(project, ['add', '--all']);
  git(project, ['commit', '--quiet', '-m', 'a pointer']);
  appendFileSync(
    join(gitDir, 'config'),
    `[filter "lfs"]\n\tclean = ${trap}\n\tsmudge = ${trap}\n\tprocess = ${trap}\n\trequired = true\n`,
  );
};

export const filtersByName: Vectors = {
  'a pointer of LFS untouched, a hostile filter of that name': { plant: withLfs },
  'a pointer of LFS changed, a hostile filter of that name': {
    plant: withLfs,
    agent: (folder) => writeFileSync(join(folder, 'x.bin'), pointer.replace('00', '11')),
    refused: /x\.bin.*filter "?lfs"?/,
  },
  'a filter that the work itself names': {
    agent: (folder) =>
      put(folder, { 'sneaky/.gitattributes': '*.dat filter=lfs\n', 'sneaky/y.dat': 'y\n' }),
    refused: /filter "?lfs"?|\.gitattributes/,
  },
};

/** Settings of tools that the merge would bring into the folder of the user. */
export const linksAway: Vectors = {
  'links to files of the system and out of the project': {
    agent: (folder, { outside }) => {
      for (const [name, to] of Object.entries({
        passwd: '/etc/passwd',
        folder: outside,
        file: join(outside, 'secret'),
      }))
        symlinkSync(to, join(folder, `to-${name}`));
      // Read through the link, this would be a rule of the attempt.
      mkdirSync(join(folder, 'rules'));
      symlinkSync(join(outside, 'secret'), join(folder, 'rules', '.gitignore'));
      put(folder, { 'rules/canary': 'saved all the same\n' });
    },
    refused: /link/,
  },
  'a folder that becomes a link out of the project': {
    agent: (folder, { outside }) => {
      renameSync(join(folder, 'lib'), join(folder, 'lib2'));
      symlinkSync(outside, join(folder, 'lib'));
    },
    refused: /lib.*link|link.*lib/,
  },
  'a link that climbs out of the project': {
    agent: (folder) => symlinkSync('../../../../etc/passwd', join(folder, 'lib', 'up')),
    refused: /link/,
  },
};

/** An earlier attempt leaves what the next one turns into a repository. */
export const trapOfAnEarlierAttempt = {
  first: (folder: string): void => {
    put(folder, { 'later/a.txt': 'a\n' });
    git(join(folder, 'later'), ['init', '--quiet', '.']);
    git(join(folder, 'later'), ['add', '--all']);
    git(join(folder, 'later'), [
      '-c',
      'user.name=x',
      '-c',
      'user.email=x',
      'commit',
      '--quiet',
      '-m',
      'x',
    ]);
  },
  second: (folder: string, plan: Plan): void => {
    rmSync(join(folder, 'later', '.git'), { recursive: true, force: true });
    makeHostileGitDir(plan, join(folder, 'later', '.git'));
    put(folder, { 'later/b.txt': 'b\n' });
    cpSync(plan.trap, join(folder, 'later', 'program'));
  },
};
