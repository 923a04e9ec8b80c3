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
    roles: { reviewer: { model: 'gpt-5.1-mini' } },
  });
});
