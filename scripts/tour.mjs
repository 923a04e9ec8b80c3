// Writes docs/guides/getting-started.md by running every command of the page on a real project with
// the real server. With --check, fails when a command prints something else now. Only the language
// model is scripted.
import { execFileSync, spawn } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { generate } from './generated.mjs';
import { unknownKeys } from './reference/events-table.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'agent-tour-'));
const project = join(folder, 'basket');
const bin = join(folder, 'bin');
const config = join(folder, 'config.json');
const { OPENAI_API_KEY: _key, ...inherited } = process.env;
const env = {
  ...inherited,
  PATH: `${bin}${delimiter}${process.env.PATH}`,
  AGENT_STATE_DIR: join(folder, 'state'),
  AGENT_SERVER_CONFIG: config,
};
const commandMs = 60_000;

/** Runs a shell line in the project. @returns its whole output, as a terminal would show it */
const shell = (line) =>
  new Promise((resolve, reject) => {
    const child = spawn('/bin/sh', ['-c', `{ ${line}\n} 2>&1`], {
      cwd: project,
      env,
      timeout: commandMs,
    });
    let output = '';
    child.stdout.on('data', (chunk) => {
      output += chunk;
    });
    child.once('error', reject);
    child.once('close', (code) => resolve({ output, code }));
  });

const names = ['bd-k3x9', 'bd-p7d2', 'bd-w5t4', 'bd-h8m1', 'bd-r6c0'];
const ids = new Map();

/** Replaces values that differ from run to run. */
const settled = (text) =>
  text
    .replace(/\bbd-[0-9a-z]{4}\b/g, (id) => {
      if (!ids.has(id)) ids.set(id, names[ids.size]);
      return ids.get(id);
    })
    .replace(/^warning: the tracker 'bd'.*\n/gm, '')
    .replaceAll(`/private${project}`, '/home/you/basket')
    .replaceAll(project, '/home/you/basket')
    .replaceAll(folder, '/home/you')
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '2026-01-15T09:30:00.000Z')
    .replace(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g, '2026-01-15 09:30:00')
    // Whether the tracker watch sees a new task before it runs depends on the machine's speed.
    .replace(/^\S+ bd-\S+ queued \(ready\)\n/gm, '')
    // So does what `wait` finds the task at, and whether it finds it over.
    .replace(/^waiting for bd-\S+: .*\n/gm, '')
    .replace(/(erged into main) \([0-9a-f]{12}\)/g, '$1 (1f0e3dad9990)')
    .replace(/ in \d+\.\d s/g, ' in 0.9 s')
    .replace(
      /^(bd-\S+ .* )(\d+s)( +(?:-|\$\S+) )/gm,
      (_, before, age, after) => `${before}${'1s'.padEnd(age.length)}${after}`,
    )
    .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:8080')
    .replace(/pid \d+/g, 'pid 4711')
    .replace(/duration_ms [\d.]+/g, 'duration_ms 221.2')
    // Each version of Node prints a failing test differently.
    .replace(
      /(bash did not succeed: ).*/g,
      '$1TAP version 13 # Subtest: an empty basket costs nothing ok 1 - …',
    )
    .replace(/node v[\d.]+/g, 'node v20.20.2')
    .replace(/[ \t]+$/gm, '')
    .trimEnd();

const page = [];
const say = (text) => page.push(text);

/** Runs a command and adds it to the page with its output. `code` is the expected exit code. */
const run = async (line, { code: expected = 0, keep = (text) => text } = {}) => {
  const { output, code } = await shell(line);
  if (code !== expected) throw new Error(`${line} ended with ${code}, not ${expected}:\n${output}`);
  const shown = settled(keep(output));
  const ends = expected === 0 ? '' : `\n$ echo $?\n${expected}`;
  page.push(`\`\`\`console\n$ ${settled(line)}${shown === '' ? '' : `\n${shown}`}${ends}\n\`\`\``);
  return output.match(/\bbd-[0-9a-z]{4}\b/)?.[0];
};

const lines = (from, to) => (text) => text.split('\n').slice(from, to).join('\n');

/** Fails when the journal has a frame that docs/reference/events.md does not describe. */
const checkFrames = async (id) => {
  const { output } = await shell(`agent logs ${id} --json 2>/dev/null`);
  const unknown = output
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
    .flatMap((frame) => unknownKeys(frame).map((key) => `${frame.type}.${key}`));
  if (unknown.length > 0)
    throw new Error(`scripts/reference/events-table.mjs does not know ${[...new Set(unknown)]}`);
};

const setUp = () => {
  cpSync(join(root, 'examples', 'demo'), project, { recursive: true });
  mkdirSync(bin);
  for (const name of ['agent', 'agent-server'])
    symlinkSync(join(root, 'dist', 'cli', `${name}.js`), join(bin, name));
  writeFileSync(
    config,
    JSON.stringify({
      server: { port: 0, register_protocol_handler: false },
      // The same on every machine; with `auto`, the default, commands run in bubblewrap or are
      // refused.
      sandbox: { mode: 'off' },
      api: { backend: 'scripted', script: join(root, 'examples', 'demo-script.json') },
    }),
  );
  const git = (...args) =>
    execFileSync('git', ['-c', 'user.name=you', '-c', 'user.email=you@localhost', ...args], {
      cwd: project,
    });
  git('init', '--quiet', '--initial-branch=main');
  git('add', '--all');
  git('commit', '--quiet', '--message', 'a basket with a failing test');
};

const tour = async () => {
  say(`# Getting started

Generated by \`npm run docs\`, which runs every command of this page on a small git repository with a
failing test. \`npm run check\` fails when a command prints something else. A script plays the
language model, so you need no key. Ids, times, ages and hashes are replaced, so that they are the
same in every run, and the warning that \`bd\` is not installed is left out.`);

  say(
    '## Tasks\n\nA task is a line of text. `--deps` names tasks that must be complete first. No set-up is needed: the\nfirst `create` makes `.beads`; `agent init` also writes a `.gitignore` for it.',
  );
  const design = await run('agent create "Design how the basket adds up"');
  const build = await run(`agent create "Fix total in src/basket.js as designed" --deps ${design}`);
  const check = await run(`agent create "Check the basket with its tests" --deps ${build}`);
  await run('agent list');
  say(
    'All three are queued. Two are blocked: they wait for another task. `--status queued` shows those\nthat are ready to run:',
  );
  await run('agent list --status queued');

  say(`## A run

The first command that needs a server starts one in the background. A task with an open dependency
is refused and stays as it was. \`explain\` shows why: what a run needs, and what is missing.`);
  await run(`agent engineer ${build}`, { code: 4 });
  await run(`agent explain ${build}`);
  say('Run one after the other:');
  await run(`agent architect ${design}`);
  await run(`agent engineer ${build}`);
  say('The agent saw the output of the tests. Its change is on a branch until you merge it:');
  await run(`agent diff ${build}`);
  await run(`agent merge ${design}`);
  await run(`agent merge ${build}`);
  say(
    'In a script, use `--async`, which returns at once. `wait` ends with 0 when all tasks are complete.',
  );
  await run(`agent --async tester ${check}`);
  await run(`agent wait ${check} --timeout 60`);
  await run(`agent show ${check}`, { keep: lines(0, 13) });
  say(
    'The results are in the project, beside the plan and the work log. An agent reads the results of the tasks\nthat its own task depends on.',
  );
  await run(`cat .beads/tasks/task-${build}/30-results.md`);

  say(`## A question

An agent that must not decide alone asks. The task waits, its clock stops, and you answer with
\`respond\`.`);
  const ask = await run('agent create "Write down what a basket may hold" --role product-manager');
  await run(`agent --async product-manager ${ask}`);
  await shell(`until agent show ${ask} | grep -q asks; do :; done`);
  await run(`agent show ${ask}`, { keep: lines(0, 13) });
  await run(`agent respond ${ask} "Yes, there is no limit."`);
  await run(`agent wait ${ask}`);

  say(
    '## What happened\n\n`logs` prints the journal of a task, oldest first. `-f` follows a running task, `--full` adds what\nevery command printed.',
  );
  await run(`agent logs ${ask}`);
  say(
    '`reopen` puts a complete task back into the queue, `cancel` stops a task, `retry` starts another attempt.',
  );
  await run(`agent reopen ${ask}`);
  await run(`agent cancel ${ask}`);

  say(
    '## When something is wrong\n\nA refusal says what is wrong and what to do. Every kind has an exit code.',
  );
  await run('agent show bd-nowhere', { code: 3 });
  await run(`agent enginer ${ask}`, { code: 2 });
  await run(`agent dep add ${design} ${check}`, { code: 4 });
  say(
    '`agent doctor` says what is used and what is missing; `agent config` prints the configuration.',
  );
  await run('agent doctor', { keep: lines(0, 7) });
  for (const id of ids.keys()) await checkFrames(id);
  say('The server runs until you stop it. The next one continues where it stopped.');
  await run('agent server stop');
  say(
    'Your own agent or model: [assistants and models](assistants-and-models.md). Then go on with\n[running agents](running-agents.md) and [workspaces](workspaces.md).',
  );
};

setUp();
try {
  await tour();
  generate('docs/guides/getting-started.md', `${page.join('\n\n')}\n`);
} catch (error) {
  console.error(`The tour broke: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
} finally {
  await shell('agent server stop');
  if (process.exitCode !== undefined)
    console.error(readFileSync(join(folder, 'state', 'server.log'), 'utf8').slice(-2_000));
  rmSync(folder, { recursive: true, force: true });
}
