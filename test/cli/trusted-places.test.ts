import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/cli/config/config.ts';
import { findProject } from '../../src/cli/config/places/project.ts';
import { requireTrustedOutside, trustedPath } from '../../src/cli/config/trusted-places.ts';
import { openProject } from '../support/cli.ts';
import { commitIn, gitIn } from '../support/git.ts';
import { openGitProject } from '../support/git-project.ts';
import { temporaryFolder } from '../support/temporary.ts';

const put = (file: string, text = 'x\n', mode = 0o600): string => {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  chmodSync(file, mode);
  return file;
};

type Config = Readonly<Record<string, object>>;

/** The key that is named, the file in the project, and a configuration that names the file. */
const cases: readonly (readonly [string, string, (file: string, root: string) => Config])[] = [
  ['server.token_file', 'token', (token_file) => ({ server: { token_file } })],
  ['store.url', 'tasks.db', (url) => ({ store: { url } })],
  ['tracker.bd_path', 'bin/bd', (bd_path) => ({ tracker: { bd_path } })],
  ['api.codex_path', 'bin/codex', (codex_path) => ({ api: { codex_path } })],
  ['api.claude_path', 'bin/claude', (claude_path) => ({ api: { claude_path } })],
  ['api.command', 'agent.sh', (file) => ({ api: { command: [file] } })],
  ['api.command', 'agent.js', () => ({ api: { command: ['node', 'agent.js'] } })],
  ['api.acp.command', 'acp.js', (file) => ({ api: { acp: { command: ['node', file] } } })],
  [
    'notify.commands.0.command',
    'hook.sh',
    (file) => ({ notify: { commands: [{ command: [file] }] } }),
  ],
  [
    'notify.commands.0.command',
    'hook.sh',
    () => ({ notify: { commands: [{ command: ['./hook.sh'] }] } }),
  ],
  [
    'notify.commands.0.command',
    'hook.sh',
    (file) => ({ notify: { commands: [{ command: ['sh', '-c', `cd /; exec ${file} --x`] }] } }),
  ],
  [
    'notify.webhooks.0.secret_file',
    'secret',
    (secret_file) => ({ notify: { webhooks: [{ url: 'https://a.example/', secret_file }] } }),
  ],
  ['mcp.servers.x.command', 'mcp.js', (command) => ({ mcp: { servers: { x: { command } } } })],
  [
    'mcp.servers.x.command',
    'mcp.js',
    (file) => ({ mcp: { servers: { x: { command: 'node', args: [file] } } } }),
  ],
  [
    'roles.engineer.prompt_file',
    'prompt.md',
    (prompt_file) => ({ roles: { engineer: { prompt_file } } }),
  ],
  ['api.script', 'script.json', (script) => ({ api: { script } })],
];

const open = (kind: 'git' | 'plain' = 'git') => {
  const root = temporaryFolder();
  const home = temporaryFolder();
  if (kind === 'git') {
    for (const folder of ['objects', 'refs'])
      mkdirSync(join(root, '.git', folder), { recursive: true });
    writeFileSync(join(root, '.git', 'HEAD'), 'ref: refs/heads/main\n');
  }
  const env = { HOME: home, PATH: '/usr/bin:/bin' };
  const project = findProject(root, root, env);
  const look = (config: object, file = join(home, 'config.json'), more: NodeJS.ProcessEnv = {}) => {
    put(file, JSON.stringify(config));
    return requireTrustedOutside(
      loadConfig({ config: file, project }, { ...env, ...more }),
      project,
      { ...env, ...more },
    );
  };
  return { root, home, env, project, look };
};

describe('what the server trusts, in the project,', () => {
  test.each(cases)(
    'is refused in shared mode and with merges, else held: %s %s',
    (key, name, make) => {
      const { root, look } = open();
      const file = put(join(root, name));
      const config = make(file, root);

      expect(() => look({ ...config, workspace: { mode: 'shared' } })).toThrow(
        `${key}: ${file} lies in ${root}, which agents change (workspace.mode is shared); move it to a folder outside`,
      );
      for (const merge of ['ff', 'squash'])
        expect(() => look({ ...config, workspace: { merge } })).toThrow(
          `${key}: ${file} lies in ${root}, which agents change (workspace.merge is ${merge})`,
        );
      expect(look(config)).toContainEqual(expect.objectContaining({ key, path: file }));
    },
  );

  test.each(cases)('is no matter outside of it: %s %s', (_, name, make) => {
    const { root, home, look } = open();
    const config = make(put(join(home, 'own', name)), root);

    expect(look({ ...config, workspace: { mode: 'shared' } })).toEqual([]);
  });

  test('is refused as the configuration file itself, and as a role file or what that names', () => {
    const { root, home, look } = open();
    const file = join(root, 'agent.json');
    const prompt = put(join(root, 'prompt.md'));
    const role = put(join(home, 'engineer.yml'), `name: engineer\nprompt_file: ${prompt}\n`);

    expect(() => look({ workspace: { mode: 'shared' } }, file)).toThrow(
      `the configuration file: ${file} lies in ${root}`,
    );
    expect(look({}, file)).toEqual([{ key: 'the configuration file', path: file }]);
    expect(() =>
      look({ workspace: { mode: 'shared' }, roles: { engineer: { file: role } } }),
    ).toThrow(new RegExp(`prompt_file: ${prompt} lies in`));
  });

  test('counts when a link leads into the project, and when a link in the project leads out', () => {
    const { root, home, look } = open();
    const inside = put(join(root, 'bin', 'codex'));
    const into = join(home, 'into');
    symlinkSync(inside, into);
    const away = join(root, 'away');
    symlinkSync(put(join(home, 'bin', 'codex')), away);
    const shared = { workspace: { mode: 'shared' } };

    for (const codex_path of [into, away])
      expect(() => look({ ...shared, api: { codex_path } })).toThrow(
        `api.codex_path: ${codex_path} lies in ${root}`,
      );
  });

  test('counts in the repository around the project, and in the folders of attempts', () => {
    const { root, env } = open();
    const below = join(root, 'packages', 'one');
    mkdirSync(below, { recursive: true });
    const project = findProject(below, below, env);
    const at = (bd_path: string, workspace: object) => {
      const file = put(
        join(env.HOME, 'c.json'),
        JSON.stringify({ workspace, tracker: { bd_path } }),
      );
      return requireTrustedOutside(loadConfig({ config: file, project }, env), project, env);
    };

    expect(() => at(put(join(root, 'bd')), { mode: 'shared' })).toThrow(`lies in ${root}`);
    expect(() => at(join(project.stateDir, 'worktrees', 'bd-a@1', 'bd'), {})).not.toThrow();
    const made = put(join(project.stateDir, 'worktrees', 'bd-a@1', 'bd'));
    expect(() => at(made, {})).toThrow('where agents work; move it to a folder outside');
  });

  test('is refused as a secret that agents would get a copy of', () => {
    const { root, look } = open('plain');
    const token_file = put(join(root, 'token'));

    expect(() => look({ server: { token_file } })).toThrow(
      `server.token_file: ${token_file} lies in ${root}, of which agents get a copy`,
    );
    expect(look({ api: { codex_path: put(join(root, 'codex')) } })).toHaveLength(1);
  });

  test('counts as a program that PATH finds there; folders of PATH there are left out', () => {
    const { root, home, env, project, look } = open();
    const PATH = `${join(root, 'node_modules', '.bin')}:.:${env.PATH}`;
    const shared = { workspace: { mode: 'shared' } };
    const loaded = (config: object) =>
      loadConfig({ config: put(join(home, 'd.json'), JSON.stringify(config)), project }, env);

    expect(trustedPath(loaded(shared), project, PATH)).toBe(env.PATH);
    expect(trustedPath(loaded({}), project, PATH)).toBe(PATH);
    const codex = put(join(root, 'node_modules', '.bin', 'codex'), 'x', 0o700);
    expect(() => look(shared, undefined, { PATH })).toThrow(
      `api.codex_path (codex on PATH): ${codex} lies in ${root}`,
    );
  });
});

const program = { api: { backend: 'scripted' } };

test('the server, agent doctor and a command that starts the server refuse it with exit 78', async () => {
  const { root, server, agent, configFile } = openProject({
    ...program,
    tracker: { mode: 'embedded' },
  });
  const hook = put(join(root, 'hook.sh'), '#!/bin/sh\n', 0o700);
  const config = JSON.parse(readFileSync(configFile, 'utf8'));
  put(configFile, JSON.stringify({ ...config, notify: { commands: [{ command: [hook] }] } }));
  const message = `notify.commands.0.command: ${hook} lies in ${root}, which agents change (workspace.mode is shared); move it to a folder outside`;

  expect(await server('--server')).toEqual({
    code: 78,
    out: '',
    err: `agent-server: ${message}\n`,
  });
  for (const words of [['doctor'], ['server', 'start']])
    expect(await agent(...words)).toEqual({ code: 78, out: '', err: `agent: ${message}\n` });
});

test('a reload to a configuration that trusts a file of the project is refused, and the old one holds', async () => {
  const { root, agent, configFile, serverFile, stateDir } = openProject(program, {
    ownServer: true,
  });
  expect((await agent('server', 'start')).code).toBe(0);
  const prompt_file = put(join(root, 'prompt.md'));
  const config = JSON.parse(readFileSync(configFile, 'utf8'));
  put(configFile, JSON.stringify({ ...config, roles: { engineer: { prompt_file } } }));

  process.kill(serverFile().pid, 'SIGHUP');

  await expect
    .poll(() => readFileSync(join(stateDir, 'server.log'), 'utf8'), { timeout: 10_000 })
    .toContain(`roles.engineer.prompt_file: ${prompt_file} lies in ${root}`);
  const log = readFileSync(join(stateDir, 'server.log'), 'utf8');
  expect(log).toContain('the new configuration is invalid; the previous one stays in effect');
  expect(log).not.toContain('configuration reloaded');
});

test('an agent cannot change a configuration in its worktree, by tool or by command', async () => {
  const call = (tool: string, args: object) => ({ calls: [{ tool, arguments: args }] });
  const evil = '{"mcp":{"servers":{"x":{"command":"/bin/sh","sandbox":"off"}}}}';
  const { root, agent, env } = openGitProject(
    [
      {
        turns: [
          call('write', { path: 'agent.json', content: evil }),
          call('edit', { path: 'agent.json', edits: [{ old_text: 'api', new_text: 'x' }] }),
          call('bash', { command: `echo '${evil}' > agent.json; echo ok > other.txt` }),
          call('finish', { status: 'done', summary: 'done' }),
        ],
      },
    ],
    { mode: 'worktree' },
  );
  const text = readFileSync(env.AGENT_SERVER_CONFIG, 'utf8');
  commitIn(root, 'agent.json', text);
  const own = join(root, 'agent.json');
  const words = ['--config', own];

  const started = await agent('server', 'start', ...words);
  const id = (await agent('create', 'one', ...words)).out.trim();
  const ran = await agent('engineer', id, ...words);
  const diff = await agent('diff', id, ...words);
  const logs = await agent('logs', id, ...words);
  const doctor = await agent('doctor', ...words);

  expect([started.code, ran.code]).toEqual([0, 0]);
  expect(gitIn(root, 'diff', '--name-only', 'HEAD', `agent/${id}/1`)).toBe('other.txt');
  expect(diff.out).toContain('other.txt');
  expect(`${diff.out}${diff.err}${ran.out}`).toContain(
    'agent.json was not saved: other programs run or trust it',
  );
  expect(logs.out).toContain('agent.json is protected: agents may not write to agent.json');
  expect(doctor.out.replace(/\s+/g, ' ')).toContain(
    `the configuration file: ${own} lies where agents work: they may not change it`,
  );
  expect(readFileSync(own, 'utf8')).toBe(text);
});

test('kept keys where agents work are refused, and named', () => {
  const { root, home, look } = open();
  const file = put(join(root, 'mine', 'agent-task-server', 'keys.json'), '{}');
  const more = { XDG_CONFIG_HOME: join(root, 'mine') };

  expect(() => look({ workspace: { mode: 'shared' } }, join(home, 'config.json'), more)).toThrow(
    `keys of agent auth login: ${file} lies in ${root}`,
  );
});
