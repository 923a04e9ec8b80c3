#!/usr/bin/env node
/**
 * node scripts/stored-states.mjs <revision>…: builds each revision, runs tasks until they rest, wait, work, ask
 * and are over, kills the server, and keeps its database and its tasks in test/fixtures/stored-states, if no
 * revision before stored states of the same shape. Needs sqlite3 and the history of git.
 */
import { execFileSync, spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const root = join(import.meta.dirname, '..');
const kept = join(root, 'test/fixtures/stored-states');

const call = (tool, args) => ({ calls: [{ tool, arguments: args }] });
const end = call('finish', { status: 'done', summary: 'done' });
const sleep = call('bash', { command: '[ -e go ] || sleep 60' });
const script = {
  scripts: [
    { title: 'asks', turns: [call('ask', { question: 'blue?' }), end] },
    { title: 'works', turns: [call('bash', { command: 'echo a' }), sleep, end] },
    { title: 'fails', turns: [call('finish', { status: 'failed', summary: 'no' })] },
    { turns: [end] },
  ],
};
const config = {
  server: { port: 0, max_concurrent_agents: 2 },
  sandbox: { mode: 'off' },
  workspace: { mode: 'shared' },
  tracker: { mode: 'embedded' },
};

/** Everything that the server stored of tasks and attempts when it was killed. */
const storedBy = async (programs, work) => {
  const [project, state, home] = ['project', 'state', 'home'].map((name) => join(work, name));
  for (const folder of [project, home]) mkdirSync(folder);
  execFileSync('git', ['init', '-q', project]);
  writeFileSync(join(work, 'script.json'), JSON.stringify(script));
  const file = join(work, 'config.json');
  writeFileSync(
    file,
    JSON.stringify({ ...config, api: { backend: 'scripted', script: join(work, 'script.json') } }),
  );
  const { PATH } = process.env;
  const env = { PATH, HOME: home, AGENT_STATE_DIR: state, AGENT_SERVER_CONFIG: file };
  const options = { cwd: project, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] };
  const agent = (...words) =>
    execFileSync(process.execPath, [join(programs, 'agent.js'), ...words], options).trim();
  const server = spawn(process.execPath, [join(programs, 'agent-server.js'), '--server'], {
    ...options,
    detached: true,
    stdio: 'ignore',
  });
  try {
    for (let tries = 0; !existsSync(join(state, 'server.json')) && tries < 300; tries += 1)
      await delay(100);
    const make = (title, ...more) => agent('create', title, ...more);
    const run = (id) => agent('engineer', id, '--async');
    const [done, fails, asks] = ['done', 'fails', 'asks'].map((title) => make(title));
    for (const id of [done, fails, asks]) run(id);
    const until = async (id, ...words) => {
      for (let tries = 0; tries < 300; tries += 1) {
        const view = agent('show', id, '--json');
        if (words.some((word) => view.includes(`"${word}"`))) return;
        await delay(200);
      }
      throw new Error(`${id} is not ${words.join(', ')}: ${agent('show', id, '--json')}`);
    };
    await until(done, 'complete');
    await until(asks, 'awaiting');
    const works = [make('works'), make('works again'), make('waits for a slot')];
    for (const id of works) run(id);
    const depends = make('depends', '--deps', works[0]);
    try {
      agent('engineer', depends, '--when-ready', '--async');
    } catch {
      // Earlier versions have no such flag.
    }
    agent('cancel', make('cancelled'));
    await until(works[0], 'acting');
    await delay(1_000);
  } finally {
    process.kill(-server.pid, 'SIGKILL');
  }
  const saved = join(work, 'saved');
  mkdirSync(join(saved, '.beads'), { recursive: true });
  const sql = (text) =>
    execFileSync('sqlite3', ['-json', join(state, 'journal.db'), text], {
      encoding: 'utf8',
      maxBuffer: 64 * 2 ** 20,
    });
  sql(`vacuum into '${join(saved, 'journal.db')}'`);
  const tasks = join('.beads', 'issues.jsonl');
  if (existsSync(join(project, tasks))) cpSync(join(project, tasks), join(saved, tasks));
  return { saved, states: JSON.parse(sql('select snapshot from actors')) };
};

const pathsIn = (value, at = '') =>
  value === null || typeof value !== 'object'
    ? [`${at}:${value === null ? 'null' : typeof value}`]
    : Object.entries(value).flatMap(([key, inner]) =>
        pathsIn(inner, Array.isArray(value) ? `${at}[]` : `${at}.${key}`),
      );
/** Where it stands, and what its context is made of. */
const shapeOf = ({ snapshot }) => {
  const { value, context } = JSON.parse(snapshot);
  return JSON.stringify([value, [...new Set(pathsIn(context))].toSorted()]);
};

const shapes = new Set();
mkdirSync(kept, { recursive: true });
for (const revision of process.argv.slice(2)) {
  const work = mkdtempSync(join(tmpdir(), 'stored-states-'));
  try {
    const git = (...words) =>
      execFileSync('git', ['-C', root, ...words], { encoding: 'utf8' }).trim();
    const [commit, date] = git('log', '-1', '--format=%h %cs', revision).split(' ');
    const source = join(work, 'source');
    mkdirSync(source);
    execFileSync('sh', ['-c', `git -C '${root}' archive ${commit} | tar -x -C '${source}'`]);
    symlinkSync(join(root, 'node_modules'), join(source, 'node_modules'));
    execFileSync('npm', ['run', 'build'], { cwd: source, stdio: 'ignore' });
    const { saved, states } = await storedBy(join(source, 'dist/cli'), work);
    const fresh = states.map(shapeOf).filter((shape) => !shapes.has(shape));
    console.log(`${commit} ${date}: ${fresh.length} new shapes`);
    if (fresh.length === 0) continue;
    for (const shape of fresh) shapes.add(shape);
    execFileSync('tar', ['-czf', join(kept, `${date}-${commit}.tar.gz`), '-C', saved, '.']);
  } catch (error) {
    console.log(`${revision}: ${String(error.stderr ?? error.message).slice(0, 300)}`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
