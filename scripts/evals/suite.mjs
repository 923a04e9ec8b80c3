// The evals of examples/evals: their description, project, and the script that solves each.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

export const evalsFolder = fileURLToPath(new URL('../../examples/evals', import.meta.url));

const readJson = (path) => JSON.parse(readFileSync(path, 'utf8'));

/** By name. */
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

/**
 * The scripted model's turns for an eval: it reads, writes the reference's files, tests, and
 * finishes.
 */
const solving = ({ folder, task }) => {
  const files = join(folder, 'reference', 'files');
  const summary = readFileSync(join(folder, 'reference', 'summary.md'), 'utf8').trim();
  const call = (tool, args) => ({ tool, arguments: args });
  const writes = filesBelow(files).map((path) =>
    call('write', { path, content: readFileSync(join(files, path), 'utf8') }),
  );
  const look =
    task.kind === 'review'
      ? call('bash', { command: 'git show' })
      : call('find', { pattern: '*.js' });
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

/** The scripted model lists files and finishes without work. */
export const idleScript = { scripts: [] };

/**
 * Copies the project of an eval into a git repository; for a review the change is the last commit.
 */
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
