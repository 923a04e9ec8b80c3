import { describe, expect, test } from 'vitest';
import { protectedPaths, protectionOf } from '../../../src/actors/files/protected-paths.ts';

const held = (name: string) => ({ name, protection: 'held' });
const shown = (name: string) => ({ name, protection: 'shown' });

describe('a protected path', () => {
  test.each([
    ['.git', held('.git')],
    ['packages/a/.git/hooks/pre-commit', held('.git')],
    ['.beads/issues.jsonl', held('.beads')],
    ['a/b/.vscode/tasks.json', held('.vscode')],
    ['opencode.jsonc', held('opencode.jsonc')],
    ['.pi/extensions/x.ts', held('.pi')],
    ['.githooks/pre-commit', held('.githooks')],
    ['.helix/languages.toml', held('.helix')],
    ['.openhands/setup.sh', held('.openhands')],
    ['.cline/hooks', held('.cline')],
    ['.autoenv', held('.autoenv')],
    ['.autoenv.zsh', held('.autoenv.zsh')],
    ['_vimrc', held('_vimrc')],
    ['_exrc', held('_exrc')],
    ['.local.vimrc', held('.local.vimrc')],
    ['.lazy.lua', held('.lazy.lua')],
    ['.theia/tasks.json', held('.theia')],
    ['a/Project.Code-Workspace', held('*.code-workspace')],
    ['rust-toolchain.toml', shown('rust-toolchain.toml')],
    ['crates/a/rust-toolchain', shown('rust-toolchain')],
    ['.pylintrc', shown('.pylintrc')],
    ['.rspec', shown('.rspec')],
    ['.run/a.run.xml', shown('.run')],
    ['.vimspector.json', shown('.vimspector.json')],
    ['ansible.cfg', shown('ansible.cfg')],
    ['.pnp.cjs', shown('.pnp.cjs')],
    ['mcp.json', shown('mcp.json')],
    ['.github/workflows/ci.yml', shown('.github')],
    ['.github', shown('.github')],
    ['packages/a/.npmrc', shown('.npmrc')],
    ['docs/AGENTS.md', shown('AGENTS.md')],
  ])('%s is protected at its depth', (path, protection) => {
    expect(protectionOf(path)).toEqual(protection);
  });

  test.each([
    '.GIT/config',
    '.g\u200cit/config',
    '\ufeff.git',
    '.git./config',
    '.git /config',
    '.git::$INDEX_ALLOCATION/config',
    'git~1/config',
    'a\\.git\\config',
    '\uff0egit',
  ])('%j is .git on some file system', (path) => {
    expect(protectionOf(path)).toEqual(held('.git'));
  });

  test('the stronger protection counts, whichever name comes first', () => {
    expect(protectionOf('.github/.git/config')).toEqual(held('.git'));
    expect(protectionOf('.vscode/.env')).toEqual(held('.vscode'));
  });

  test.each([
    '',
    '.',
    'src/a.ts',
    '.gitignore',
    'git',
    'a.git',
    'Makefile',
    'package.json',
    '.beads-notes',
    'claude/a',
    'code-workspace',
    '.venv/bin/python',
  ])('%j is not protected', (path) => {
    expect(protectionOf(path)).toBeNull();
  });
});

test('the table has a reason for each name, and each name once', () => {
  const names = protectedPaths.map(({ name }) => name.toLowerCase());

  expect(new Set(names).size).toBe(names.length);
  expect(
    protectedPaths.filter(({ name, reason }) => name.includes('/') || reason.length < 10),
  ).toEqual([]);
});

test.each(
  (
    'opencode.json opencode.jsonc .opencode .pi .agents .claude .codex .gemini .copilot .github/workflows .github/mcp.json ' +
    '.github/copilot-instructions.md crush.json .aider.conf.yml .mcp.json .vscode .idea .husky .envrc .env .npmrc .yarnrc.yml ' +
    '.gitattributes .gitmodules lefthook.yml .pre-commit-config.yaml .iex.exs .octaverc .Renviron .erlang .gitpod.yml .idx ' +
    'AGENT.md WARP.md .rules'
  ).split(' '),
)('%s, which a program executes or trusts, is protected', (path) => {
  expect(protectionOf(path)).not.toBeNull();
  expect(protectionOf(`deep/er/${path}`)).not.toBeNull();
});
