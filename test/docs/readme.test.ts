import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { loadConfig } from '../../src/cli/config/config.ts';
import { resolveSettings } from '../../src/cli/config/settings.ts';
import { temporaryFolder } from '../support/temporary.ts';

const readme = readFileSync(fileURLToPath(new URL('../../README.md', import.meta.url)), 'utf8');

test('a server starts with the configuration that the README shows', () => {
  const [, shown = ''] = /```json\n([\s\S]*?)\n```/.exec(readme) ?? [];
  const file = join(temporaryFolder(), 'config.json');
  writeFileSync(file, shown);

  const { settings } = resolveSettings(loadConfig({ config: file }, {}), temporaryFolder());

  expect(settings).toMatchObject({
    cap: 5,
    maxCostUsd: 2,
    roles: { reviewer: { model: 'gpt-5-mini' } },
  });
});

test('a stranger can start before the state diagram, with Claude or a key of any provider', () => {
  const [before = '', after = ''] = readme.split('```mermaid');
  const start = readme.slice(0, readme.indexOf('## Quick start'));

  expect(before).toContain('## Quick start');
  const keys = ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'GEMINI_API_KEY', 'OPENROUTER_API_KEY'];
  for (const named of ['claude auth login', 'codex login', ...keys, 'docs/guides/models.md'])
    expect(before).toContain(named);
  expect(after).toContain('queued --> started');
  // The words of the glossary (docs/architecture.md) that mean nothing to a stranger.
  expect(start).not.toMatch(
    /\b(attempt|turn|step|slot|journal|entr(y|ies)|frame|parked|statechart)s?\b/i,
  );
});
