import { chmodSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';
import { temporaryFolder } from '../support/temporary.ts';

const notes = (text: string): readonly string[] =>
  text.split('\n').filter((line) => line.startsWith('note:'));

test('a configuration that does not count is said once, with what to do', async () => {
  const { agent, agentWith, configFile } = openProject();
  const other = join(temporaryFolder(), 'other.json');
  writeFileSync(other, JSON.stringify({ agent: { max_turns: 3 } }));
  const same = join(temporaryFolder(), 'same.json');
  symlinkSync(configFile, same);
  await agent('server', 'start');
  await agent('create', 'x');

  const flag = await agent('list', '--config', other);
  const used = await agent('list', '--config', same);
  const looks = await agentWith({ AGENT_SERVER_CONFIG: other }, 'list');
  const starts = await agentWith({ AGENT_SERVER_CONFIG: other }, 'run', '--async');
  await agent('server', 'restart', '--config', other);
  const after = await agent('list', '--config', other);
  const before = await agent('list', '--config', configFile);

  expect(notes(flag.err)).toEqual([
    `note: --config ${other} does not count: a server runs already, which was started with ${configFile}; to change that: agent server restart --config ${other}`,
  ]);
  expect(notes(starts.err)).toContain(
    `note: AGENT_SERVER_CONFIG ${other} does not count: a server runs already, which was started with ${configFile}; to change that: agent server restart`,
  );
  for (const { err } of [used, looks, after]) expect(notes(err)).toEqual([]);
  expect(notes(before.err)).toHaveLength(1);
});

const codexIn = (version: string): string => {
  const folder = temporaryFolder();
  const codex = join(folder, 'codex');
  writeFileSync(
    codex,
    `#!/bin/sh\n[ "$1" = --version ] && exec echo "codex-cli ${version}"\nexit 1\n`,
  );
  chmodSync(codex, 0o755);
  return folder;
};

test('doctor says where the running server and this shell differ, and never a key', async () => {
  const { agentWith, configFile } = openProject();
  const other = join(temporaryFolder(), 'other.json');
  writeFileSync(other, JSON.stringify({ server: { port: 0 }, agent: { max_turns: 3 } }));
  const [old, young] = [codexIn('0.1.0'), codexIn('0.2.0')];
  const path = (folder: string): string => `${folder}:${process.env['PATH']}`;
  const theirs = { PATH: path(old), ANTHROPIC_API_KEY: 'key-of-claude', OPENAI_API_KEY: '' };
  const ours = { PATH: path(young), OPENAI_API_KEY: 'key-of-openai', AGENT_SERVER_CONFIG: other };
  await agentWith(theirs, 'server', 'start');

  const same = await agentWith(theirs, 'doctor', '--json');
  const differs = await agentWith(ours, 'doctor', '--json');

  const ofServer = (out: string): readonly string[] =>
    JSON.parse(out).checks.flatMap((row: { check: string; detail: string }) =>
      row.check === 'server' ? [row.detail] : [],
    );
  expect(ofServer(same.out)).toEqual([expect.stringMatching(/^running at/)]);
  expect(ofServer(differs.out)).toEqual([
    expect.stringMatching(/^running at/),
    `its PATH has no ${young}`,
    `its PATH has ${old}, and this shell has not`,
    `codex is ${old}/codex (codex-cli 0.1.0) for it, and ${young}/codex (codex-cli 0.2.0) in this shell`,
    'it has no OPENAI_API_KEY, which is set in this shell',
    'it has ANTHROPIC_API_KEY, which is not set in this shell',
    `api.backend is "scripted" (${configFile}) for it, and "auto" (default) here`,
    `agent.max_turns is 50 (default) for it, and 3 (${other}) here`,
    `sandbox.mode is "off" (${configFile}) for it, and "auto" (default) here`,
    `workspace.mode is "shared" (${configFile}) for it, and "worktree" (default) here`,
    'it takes what this shell has at: agent server restart',
  ]);
  expect(same.out + differs.out).not.toMatch(/key-of/);
});
