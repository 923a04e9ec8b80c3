// The main job on a fresh machine: three agents complete three dependent tasks in a real git
// repository, through the real server, CLI, HTTP, SSE and provider client. Only the language model
// is scripted: OPENAI_BASE_URL points to a server on this machine.
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseScript } from '../build/actors/model/script.js';
import { createScriptedModel } from '../build/actors/model/scripted.js';
import { createBubblewrap } from '../build/actors/sandbox/bubblewrap.js';
import { play } from '../test/model-server/play.mjs';
import { createModelServer } from '../test/model-server/server.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const cli = join(root, 'dist', 'cli', 'agent.js');
const folder = mkdtempSync(join(tmpdir(), 'agent-demo-'));
const project = join(folder, 'basket');
const state = join(folder, 'state');
const config = join(folder, 'config.json');
const script = parseScript(
  JSON.parse(readFileSync(join(root, 'examples', 'demo-script.json'), 'utf8')),
);
const provider = await createModelServer({ answer: play(createScriptedModel(script)) });
const env = {
  ...process.env,
  OPENAI_API_KEY: 'no-key-a-script-on-this-machine-answers',
  OPENAI_BASE_URL: provider.baseURL,
  API_MODE: 'direct',
  AGENT_STATE_DIR: state,
  // Its lock, too, goes with the folder.
  XDG_STATE_HOME: join(folder, 'state-home'),
  AGENT_SERVER_CONFIG: config,
};
/**
 * Without a sandbox the demo runs commands as the user and says so; a real server would refuse
 * them.
 */
const held = createBubblewrap({ readPaths: [], network: false }).check();
const began = Date.now();
const commandMs = 60_000;

const say = (text) => console.log(`\n\u2014 ${text}`);
const git = (...args) =>
  execFileSync('git', ['-c', 'user.name=demo', '-c', 'user.email=demo@localhost', ...args], {
    cwd: project,
  });

/** Runs `agent` as a person would, and prints its output. @returns output and exit code */
const agent = (...args) =>
  new Promise((resolve, reject) => {
    console.log(
      `$ agent ${args.map((arg) => (/\s/.test(arg) ? JSON.stringify(arg) : arg)).join(' ')}`,
    );
    const child = spawn(process.execPath, [cli, ...args], {
      cwd: project,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: commandMs,
    });
    let output = '';
    child.stdout.on('data', (chunk) => {
      output += chunk;
      process.stdout.write(chunk);
    });
    child.stderr.on('data', (chunk) => {
      if (!String(chunk).startsWith("warning: the tracker 'bd'")) process.stdout.write(chunk);
    });
    child.on('error', reject);
    child.on('close', (code) => resolve({ output: output.trim(), code }));
  });

const must = async (...args) => {
  const { output, code } = await agent(...args);
  if (code !== 0) throw new Error(`agent ${args[0]} ended with exit code ${code}`);
  return output;
};

const stopServer = async () => {
  let pid;
  try {
    ({ pid } = JSON.parse(readFileSync(join(state, 'server.json'), 'utf8')));
  } catch {
    return;
  }
  process.kill(pid, 'SIGTERM');
  for (let tries = 0; tries < 100; tries += 1) {
    try {
      process.kill(pid, 0);
    } catch {
      return;
    }
    await delay(100);
  }
  console.log(`the server (pid ${pid}) did not stop; end it with: kill ${pid}`);
};

const main = async () => {
  cpSync(join(root, 'examples', 'demo'), project, { recursive: true });
  git('init', '--quiet', '--initial-branch=main');
  git('add', '--all');
  git('commit', '--quiet', '--message', 'a basket with a failing test');
  writeFileSync(
    config,
    JSON.stringify({
      server: { port: 0, register_protocol_handler: false },
      sandbox: { mode: held.ok ? 'auto' : 'off' },
      api: {
        backend: 'builtin',
        provider_model: 'scripted-over-http',
        prices: { 'scripted-over-http': { input_per_million: 0, output_per_million: 0 } },
      },
      budget: { day_usd: 1 },
    }),
  );
  console.log(`A git repository with a failing test: ${project}`);
  console.log(
    held.ok
      ? `Their commands run in a sandbox (${held.detail}).`
      : `Skipped: the sandbox (${held.detail}). Commands run as you, in that folder.`,
  );
  console.log(
    `The model is a script on this machine (${provider.baseURL}): no language model is called, no key is needed.`,
  );

  say('Three tasks; each depends on the one before.');
  const design = await must('create', 'Design how the basket adds up');
  const build = await must('create', 'Fix total in src/basket.js as designed', '--deps', design);
  const check = await must('create', 'Check the basket with its tests', '--deps', build);

  say('Only the first one is ready; running the second is refused.');
  await must('list', '--status', 'queued');
  const refused = await agent('engineer', build);
  if (refused.code !== 4)
    throw new Error(`expected a refusal with exit code 4, got ${refused.code}`);

  say('The architect, the engineer and the tester, one after the other.');
  await must('architect', design);
  await must('engineer', build);
  await must('tester', check);

  say('The result.');
  await must('list');

  say(
    'Each attempt worked on its own branch; the project folder is unchanged until you merge the work.',
  );
  await must('diff', build);
  await must('merge', design);
  await must('merge', build);
  console.log(`\n$ cat .beads/tasks/task-${check}/30-results.md`);
  process.stdout.write(
    readFileSync(join(project, '.beads', 'tasks', `task-${check}`, '30-results.md'), 'utf8'),
  );
};

process.on('SIGINT', () => {
  void stopServer().finally(() => {
    console.log(`\nInterrupted. Left: ${folder}`);
    process.exit(130);
  });
});

let failed = false;
try {
  await main();
} catch (error) {
  failed = true;
  console.error(`\nThe demo failed: ${error instanceof Error ? error.message : error}`);
  console.error(`The server's log: ${join(state, 'server.log')}`);
} finally {
  await stopServer();
  await provider.close();
}
if (!failed) {
  rmSync(state, { recursive: true, force: true });
  const seconds = ((Date.now() - began) / 1000).toFixed(1);
  console.log(
    `\nThree tasks complete in ${seconds} s. The server is stopped. Left for you to look at:`,
  );
  console.log(`  results  ${join(project, '.beads', 'tasks')}`);
  console.log(`  remove   rm -r ${folder}`);
  console.log(`
Next, in your own project:
  mkdir -p ~/.local/bin && ln -sf ${cli} ~/.local/bin/agent && export PATH="$HOME/.local/bin:$PATH"
  cd my-project && agent doctor    # what it would use, and what is missing`);
}
process.exitCode = failed ? 1 : 0;
