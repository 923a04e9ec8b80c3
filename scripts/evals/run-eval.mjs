import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkWork } from './check-work.mjs';
import { makeProject } from './suite.mjs';

const cli = fileURLToPath(new URL('../../dist/cli/agent.js', import.meta.url));
/** Beyond the limit of the attempt: the start of the server, the end of the attempt, the stop. */
const spareMs = 60_000;

const agent = ({ project, env, limitMs = spareMs }, ...args) =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [cli, ...args], {
      cwd: project,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: limitMs,
      killSignal: 'SIGINT',
    });
    let out = '';
    let err = '';
    child.stdout.on('data', (chunk) => {
      out += chunk;
    });
    child.stderr.on('data', (chunk) => {
      err += chunk;
    });
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, out, err: err.trim() }));
  });

const must = async (place, ...args) => {
  const { code, out, err } = await agent(place, ...args);
  if (code !== 0)
    throw new Error(`agent ${args[0]} ended with exit code ${code}: ${err.split('\n').at(-1)}`);
  return out.trim();
};

/** The user's configuration, with the limits of the eval: every attempt has some. */
const configFor = ({ task }, { base, model, script, maxCostUsd, unconfined }, scriptFile) => {
  const { model: _, ...own } = base.roles?.[task.role] ?? {};
  const role = {
    ...(model === null ? (base.roles?.[task.role] ?? {}) : own),
    max_turns: task.max_turns,
    max_tokens_total: task.max_tokens_total,
    timeout_seconds: task.timeout_seconds,
    ...(maxCostUsd === null ? {} : { max_cost_usd: maxCostUsd }),
  };
  const played = script === null ? {} : { backend: 'scripted', script: scriptFile };
  return {
    ...base,
    server: { ...base.server, port: 0, register_protocol_handler: false },
    workspace: { ...base.workspace, mode: 'worktree', merge: 'none' },
    sandbox: { ...base.sandbox, ...(unconfined ? { mode: 'off' } : {}) },
    // Nobody answers, and the eval measures one attempt.
    agent: { ...base.agent, max_retries: 0, answer_timeout_seconds: 5 },
    api: {
      ...base.api,
      ...(model === null || script !== null ? {} : { provider_model: model }),
      ...played,
    },
    roles: { ...base.roles, [task.role]: role },
  };
};

const problemOf = ({ status, error }) =>
  status === 'complete'
    ? null
    : `the task is ${status}${error === undefined ? '' : `: ${error.code}: ${error.message}`}`;

const seconds = ({ started_at: from, completed_at: to }) =>
  from === undefined || to === undefined ? null : (Date.parse(to) - Date.parse(from)) / 1_000;

const play = async (given, place, options) => {
  const { task } = given;
  const { project } = place;
  const id = await must(place, 'create', task.description, '--title', task.title);
  const run = await agent(
    { ...place, limitMs: task.timeout_seconds * 1_000 + spareMs },
    task.role,
    id,
  );
  const view = JSON.parse(await must(place, 'show', id, '--json'));
  const { code, out } = await agent(place, 'diff', id);
  const patch = code === 0 ? out : '';
  const failed = await checkWork(given, {
    ...options,
    project,
    patch,
    summary: view.result ?? '',
    at: place.at,
  });
  const why = [
    problemOf(view),
    view.attempt === 0 ? run.err.split('\n').at(-1) : null,
    failed,
  ].filter(Boolean);
  const { turns, tool_calls, input_tokens, output_tokens, cost_usd = null } = view.usage;
  return {
    ok: why.length === 0,
    why,
    turns,
    tool_calls,
    input_tokens,
    output_tokens,
    cost_usd,
    seconds: seconds(view),
  };
};

/** An attempt that could not run counts as failed. */
const nothing = {
  turns: 0,
  tool_calls: 0,
  input_tokens: 0,
  output_tokens: 0,
  cost_usd: null,
  seconds: null,
};

/** Runs one eval on its own project and server, and stops the server. */
export const runEval = async (given, options) => {
  const at = mkdtempSync(join(tmpdir(), 'agent-eval-'));
  const [project, config, script] = ['project', 'config.json', 'script.json'].map((name) =>
    join(at, name),
  );
  const place = {
    at,
    project,
    env: { ...process.env, AGENT_STATE_DIR: join(at, 'state'), AGENT_SERVER_CONFIG: config },
  };
  let row;
  try {
    makeProject(given, project);
    if (options.script !== null) writeFileSync(script, JSON.stringify(options.script));
    writeFileSync(config, JSON.stringify(configFor(given, options, script)));
    row = await play(given, place, options);
  } catch (error) {
    row = { ok: false, why: [error instanceof Error ? error.message : String(error)], ...nothing };
  } finally {
    await agent(place, 'server', 'stop');
    if (!options.keep) rmSync(at, { recursive: true, force: true });
  }
  return {
    eval: given.name,
    kind: given.task.kind,
    role: given.task.role,
    ...row,
    ...(options.keep ? { folder: at } : {}),
  };
};
