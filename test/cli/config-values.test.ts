import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../src/cli/config/config.ts';
import { temporaryFolder } from '../support/temporary.ts';

const load = (config: object) => {
  const file = join(temporaryFolder(), 'config.json');
  writeFileSync(file, JSON.stringify(config));
  return loadConfig({ config: file }, {}).config;
};

test('a person may take any time by default, and a default answer needs a time limit', () => {
  const answered = { default_answer: 'go on' };

  expect(load({}).agent.answer_timeout_seconds).toBe(0);
  expect(() => load({ agent: answered })).toThrow(
    'agent.default_answer: has no effect while agent.answer_timeout_seconds is 0',
  );
  expect(load({ agent: { ...answered, answer_timeout_seconds: 60 } }).agent).toMatchObject(
    answered,
  );
});
