import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/cli/config/config.ts';
import { modelsFor } from '../../../src/cli/server/models.ts';
import { temporaryFolder } from '../../support/temporary.ts';

test.each([
  ['{\n  "scripts": [,]\n}\n', ':2: not JSON: expected'],
  [
    '{\n  "scripts": [\n    { "turns": [{ "calls": [{ "tool": 7, "arguments": {} }] }] }\n  ]\n}\n',
    ':3: scripts.0.turns.0.calls.0.tool: expected text',
  ],
  ['{\n  "turn_ms": 1\n}\n', ': scripts: is missing; expected a list'],
  ['{\n  "scripts": [],\n  "speed": 1\n}\n', ':3: speed: is not known here'],
  [null, ': the file cannot be read'],
])('a script that is wrong is refused with its file, line and our words: %j', (text, why) => {
  const folder = temporaryFolder();
  const [config, script] = [join(folder, 'config.json'), join(folder, 'script.json')];
  writeFileSync(config, JSON.stringify({ api: { backend: 'scripted', script } }));
  if (text !== null) writeFileSync(script, text);

  const load = () => modelsFor(loadConfig({ config }, {}), {});

  expect(load).toThrow(`${config}: api.script: ${script}${why}`);
});
