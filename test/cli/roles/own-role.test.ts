import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/cli/config/config.ts';
import { settingsFrom } from '../../../src/cli/config/settings.ts';
import { shippedRoles } from '../../../src/cli/roles/read-project-roles.ts';
import { temporaryFolder } from '../../support/temporary.ts';

/** A configuration with a role file beside it. */
const settingsWith = (
  config: object,
  roleFile: string | Buffer,
  more: Readonly<Record<string, string>> = {},
) => {
  const folder = temporaryFolder();
  const file = join(folder, 'config.json');
  writeFileSync(file, JSON.stringify(config));
  writeFileSync(join(folder, 'tester.yml'), roleFile);
  for (const [name, text] of Object.entries(more)) writeFileSync(join(folder, name), text);
  return settingsFrom(loadConfig({ config: file }, {}), temporaryFolder());
};

const named = { roles: { tester: { file: 'tester.yml' } } };

test('shipped file < settings of every role < the user’s file < the keys of the role', () => {
  const config = {
    agent: { timeout_seconds: 60, max_turns: 40, require_approval: ['bash'] },
    roles: { tester: { file: 'tester.yml', max_turns: 7 } },
  };
  const file =
    'limits: { timeout_seconds: 30, max_turns: 20 }\nmodel: small\nsuccess_criteria: [all is green]\n';

  const { roles } = settingsWith(config, file);

  expect(roles.tester).toMatchObject({
    ...shippedRoles().tester,
    timeoutMs: 30_000,
    maxTurns: 7,
    model: 'small',
    approvals: ['bash'],
    criteria: ['all is green'],
  });
  expect(roles.engineer).toMatchObject({ timeoutMs: 60_000, maxTurns: null, model: null });
});

test('a role file sets every part of a role, its prompt in a second file', () => {
  const file = `
name: tester
description: breaks things
tools: [read, finish]
limits: { timeout_seconds: 5, max_turns: 3, max_tokens_total: 9, max_cost_usd: 0.5 }
backend: scripted
model: small
require_approval: [read]
verify: [npm test]
concurrency: 1
network: true
prompt_file: words.md
`;

  const { roles } = settingsWith(named, file, { 'words.md': 'You break things.' });

  expect(roles.tester).toEqual({
    role: 'tester',
    description: 'breaks things',
    tools: ['read', 'finish'],
    timeoutMs: 5_000,
    maxTurns: 3,
    maxTokensTotal: 9,
    maxCostUsd: 0.5,
    backend: 'scripted',
    model: 'small',
    approvals: ['read'],
    verify: ['npm test'],
    concurrency: 1,
    mcp: [],
    network: true,
    prompt: 'You break things.',
    criteria: [],
    projectNotes: null,
  });
});

test('another prompt drops the criteria of the shipped role', () => {
  const own = settingsWith({ roles: { tester: { prompt_file: 'words.md' } } }, '', {
    'words.md': 'You draw.',
  });

  expect(own.roles.tester).toMatchObject({ prompt: 'You draw.', criteria: [] });
});

test.each<[string, string | Buffer, string]>([
  ['a key that nobody knows', 'colour: red', 'tester.yml: colour: cannot be set here'],
  [
    'a limit that nobody knows',
    'limits: { timeout: 3 }',
    'tester.yml: limits.timeout: cannot be set here',
  ],
  ['a tool that does not exist', 'tools: [rm, finish]', 'tester.yml: tools.0: '],
  ['a role that could never end', 'tools: [read]', 'tester.yml: tools: must include finish'],
  [
    'the file of another role',
    'name: engineer',
    'tester.yml: name: is engineer in the file of the tester',
  ],
  [
    'two prompts',
    'prompt: a\nprompt_file: b',
    'tester.yml: prompt_file: cannot be combined with prompt',
  ],
  ['a prompt that is not there', 'prompt_file: none.md', 'tester.yml.prompt_file: '],
  ['what is not YAML', 'a: [', 'tester.yml: not YAML: '],
  ['what is not UTF-8', Buffer.from([0x61, 0xff]), 'tester.yml: not UTF-8'],
])('%s in the user’s file keeps the server from starting, by name', (_, file, message) => {
  expect(() => settingsWith(named, file)).toThrow(message);
});

test('a missing role file is refused by its key', () => {
  expect(() => settingsWith({ roles: { tester: { file: 'none.yml' } } }, '')).toThrow(
    'roles.tester.file: ',
  );
});
