import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect, onTestFinished, test } from 'vitest';
import { bin, openProject } from '../support/cli.ts';
import { isLong } from '../support/long.ts';
import { type Answer, startModelServer } from '../support/model-server.ts';
import { realAgent } from '../support/real-agents.ts';
import { realClaude, startMessagesApi } from '../support/real-claude.ts';
import { realCodex } from '../support/real-codex.ts';

const guide = readFileSync(join(import.meta.dirname, '../../docs/guides/mcp-and-a2a.md'), 'utf8');
/** The first block of a section of the guide that has this text, as it is printed. */
const snippet = (section: string, part: string): string => {
  const text = guide.split(`\n### ${section}\n`)[1]?.split('\n### ')[0] ?? '';
  const blocks = [...text.matchAll(/```\w+\n(.*?)```/gs)].map(([, block = '']) => block);
  return blocks.find((block) => block.includes(part)) ?? expect.fail(`no ${part} in ${section}`);
};

/** A project, an `agent` on the path, and a home folder of the assistant's own. */
const open = () => {
  const project = openProject({ server: { port: 0 } });
  // codex creates its helpers only outside the temporary folder.
  const home = realpathSync(mkdtempSync('/var/tmp/agent-test-'));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  const file = join(home, 'bin', 'agent');
  mkdirSync(join(home, 'bin'));
  writeFileSync(file, `#!/bin/sh\nexec "${process.execPath}" "${bin('agent')}" "$@"\n`);
  chmodSync(file, 0o755);
  const run = (path: string, args: readonly string[], variables: Record<string, string>) =>
    execa(path, args, {
      cwd: project.root,
      env: {
        ...project.env,
        PATH: `${join(home, 'bin')}:${process.env['PATH']}`,
        HOME: home,
        // opencode reads its folder here.
        PWD: project.root,
        ...variables,
      },
      extendEnv: false,
      reject: false,
      stdin: 'ignore',
      timeout: 120_000,
    });
  const titles = async () => {
    const { out } = await project.agent('list', '--json');
    return out
      .trim()
      .split('\n')
      .flatMap((line) => /"title":"([^"]*)"/.exec(line)?.[1] ?? []);
  };
  /** A snippet for the server of this project; over HTTP it must run, and its token be known. */
  const forThisServer = async (text: string) => {
    const none: Record<string, string> = {};
    if (!text.includes(documented)) return { text, token: none };
    await project.agent('server', 'start');
    const { out } = await project.agent('token');
    return {
      text: text.replace(documented, project.serverFile()?.url ?? ''),
      token: { AGENT_SERVER_TOKEN: out.trim() },
    };
  };
  return { home, run, titles, forThisServer };
};

const documented = 'http://127.0.0.1:8080';

const task = { description: 'Handed over' };
const key = 'sk-of-a-test';

test('the real claude hands over a task with the settings of the guide', {
  timeout: 300_000,
}, async ({ skip }) => {
  if (!isLong) return skip('npm run test:long runs the real claude');
  const claude = await realClaude();
  if ('reason' in claude) return skip(claude.reason);
  const { home, run, titles } = open();
  const { baseURL, asked } = await startMessagesApi([
    { call: { name: 'mcp__tasks__create_task', input: task } },
    { text: 'It is handed over.' },
  ]);
  const file = join(home, 'tasks.json');
  writeFileSync(file, snippet('Claude Code', 'mcpServers'));

  const args = ['-p', 'Hand it over', '--mcp-config', file, '--allowedTools', 'mcp__tasks'];
  const { stdout, stderr } = await run(claude.path, args, {
    ANTHROPIC_BASE_URL: baseURL,
    ANTHROPIC_API_KEY: key,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  });

  expect(stdout, stderr).toContain('It is handed over.');
  expect(asked[1]).toContain('bd-');
  expect(await titles()).toEqual(['Handed over']);
});

test.for(['Claude Code', 'Over HTTP'])(
  'the real claude hands over a task as the guide adds it: %s',
  {
    timeout: 300_000,
  },
  async (section, { skip }) => {
    if (!isLong) return skip('npm run test:long runs the real claude');
    const claude = await realClaude();
    if ('reason' in claude) return skip(claude.reason);
    const { home, run, titles, forThisServer } = open();
    const { baseURL, asked } = await startMessagesApi([
      { call: { name: 'mcp__tasks__create_task', input: task } },
      { text: 'It is handed over.' },
    ]);
    const variables = { ANTHROPIC_BASE_URL: baseURL, ANTHROPIC_API_KEY: key };
    const add = await forThisServer(snippet(section, 'claude mcp add'));

    symlinkSync(claude.path, join(home, 'bin', 'claude'));
    const added = await run('/bin/sh', ['-ec', add.text], variables);
    const only = ['mcp__tasks__create_task', 'mcp__tasks__task_status'].join(',');
    const { stdout, stderr } = await run(
      claude.path,
      ['-p', 'Hand it over', '--allowedTools', only],
      variables,
    );

    expect(guide).toContain(`--allowedTools ${only}`);
    expect(added.stdout, added.stderr).toContain('tasks');
    expect(stdout, stderr).toContain('It is handed over.');
    expect(asked[1]).toContain('bd-');
    expect(await titles()).toEqual(['Handed over']);
  },
);

const answers = (calls: NonNullable<Extract<Answer, { kind: 'answer' }>['calls']>) => {
  const said: readonly Answer[] = [
    { kind: 'answer', calls },
    { kind: 'answer', text: 'It is handed over.' },
  ];
  let next = 0;
  return startModelServer(({ body }) =>
    JSON.stringify(body).includes('"tools":[')
      ? (said[next++] ?? { kind: 'status', status: 400 })
      : { kind: 'answer', text: 'A title' },
  );
};

test.for(['Codex', 'Over HTTP'])(
  'the real codex hands over a task with the settings of the guide: %s',
  {
    timeout: 300_000,
  },
  async (section, { skip }) => {
    if (!isLong) return skip('npm run test:long runs the real codex');
    const codex = await realCodex();
    if ('reason' in codex) return skip(codex.reason);
    const { home, run, titles, forThisServer } = open();
    const call = { id: 'c1', namespace: 'mcp__tasks', name: 'create_task' };
    const provider = await answers([{ ...call, arguments: JSON.stringify(task) }]);
    const own = `[model_providers.scripted]\nname = "scripted"\nbase_url = "${provider.baseURL}"\nwire_api = "responses"\nenv_key = "CODEX_API_KEY"\n`;
    const quiet = 'check_for_update_on_startup = false\n[analytics]\nenabled = false\n';
    // Without a person, as the guide says.
    const server = await forThisServer(
      snippet(section, 'mcp_servers').replace('"prompt"', '"approve"'),
    );
    writeFileSync(
      join(home, 'config.toml'),
      `model_provider = "scripted"\nmodel = "gpt-5.1"\n${quiet}${own}${server.text}`,
    );

    const { stdout, stderr } = await run(
      codex.path,
      ['exec', '--skip-git-repo-check', 'Hand it over'],
      {
        CODEX_HOME: home,
        CODEX_API_KEY: key,
        ...server.token,
      },
    );

    expect(stdout, stderr).toContain('It is handed over.');
    expect(await titles()).toEqual(['Handed over']);
  },
);

test.for(['opencode', 'Over HTTP'])(
  'the real opencode hands over a task with the settings of the guide: %s',
  {
    timeout: 300_000,
  },
  async (section, { skip }) => {
    if (!isLong) return skip('npm run test:long runs the real opencode');
    const opencode = await realAgent('opencode');
    if ('reason' in opencode) return skip(opencode.reason);
    const { home, run, titles, forThisServer } = open();
    const provider = await answers([
      { id: 'c1', name: 'tasks_create_task', arguments: JSON.stringify(task) },
    ]);
    const folder = join(home, '.config', 'opencode');
    mkdirSync(folder, { recursive: true });
    const scripted = {
      npm: '@ai-sdk/openai-compatible',
      options: { baseURL: provider.baseURL, apiKey: key },
      models: { scripted: { limit: { context: 100_000, output: 10_000 } } },
    };
    const settings = { model: 'scripted/scripted', provider: { scripted } };
    const server = await forThisServer(snippet(section, '"mcp"'));
    writeFileSync(
      join(folder, 'opencode.json'),
      JSON.stringify({ ...settings, ...JSON.parse(server.text) }),
    );

    const { stdout, stderr } = await run(opencode.path, ['run', 'Hand it over'], {
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      ...server.token,
    });

    expect(stdout, stderr).toContain('It is handed over.');
    expect(await titles()).toEqual(['Handed over']);
  },
);
