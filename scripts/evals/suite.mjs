// The evals of examples/evals: what each one is, the project that an agent gets, and the script that solves it.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

export const evalsFolder = fileURLToPath(new URL('../../examples/evals', import.meta.url));

const readJson = (path) => JSON.parse(readFileSync(path, 'utf8'));

/** All evals, by name. */
export const readSuite = () =>
  readdirSync(evalsFolder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => ({
      name,
      folder: join(evalsFolder, name),
      task: readJson(join(evalsFolder, name, 'task.json')),
    }))
    .sort((a, b) => a.name.localeCompare(b.name));

const filesBelow = (folder) =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => relative(folder, join(entry.parentPath ?? entry.path, entry.name)))
        .sort()
    : [];

/** What the scripted model plays to solve an eval: it looks, writes the files of the reference, tests, and ends. */
const solving = ({ folder, task }) => {
  const files = join(folder, 'reference', 'files');
  const summary = readFileSync(join(folder, 'reference', 'summary.md'), 'utf8').trim();
  const call = (tool, args) => ({ tool, arguments: args });
  const writes = filesBelow(files).map((path) =>
    call('write', { path, content: readFileSync(join(files, path), 'utf8') }),
  );
  const look = task.kind === 'review' ? call('bash', { command: 'git show' }) : call('find', { pattern: '*.js' });
  return {
    role: task.role,
    title: task.title,
    turns: [
      { say: 'I look at what is there.', calls: [look] },
      ...(writes.length === 0 ? [] : [{ say: 'I write it.', calls: writes }]),
      { say: 'Now the tests.', calls: [call('bash', { command: 'npm test --silent' })] },
      { say: 'That is it.', calls: [call('finish', { status: 'done', summary })] },
    ],
  };
};

/** A script of the scripted model that solves these evals. */
export const solvingScript = (evals) => ({ scripts: evals.map(solving) });

/** One that does nothing: the scripted model looks around and ends. */
export const idleScript = { scripts: [] };

/** Puts the project of an eval into a folder, in git; of a review the change is the last commit. */
export const makeProject = ({ folder, task }, root) => {
  const git = (...args) =>
    execFileSync('git', ['-c', 'user.name=eval', '-c', 'user.email=eval@localhost', ...args], {
      cwd: root,
      stdio: 'ignore',
    });
  const commit = (from, message) => {
    cpSync(join(folder, from), root, { recursive: true });
    git('add', '--all');
    git('commit', '--quiet', '--message', message);
  };
  mkdirSync(root, { recursive: true });
  git('init', '--quiet', '--initial-branch=main');
  commit('project', 'the project');
  if (existsSync(join(folder, 'change'))) commit('change', task.title);
};
