import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { loadConfig } from '../../../src/cli/config/config.ts';
import { createLogger, loggingOf } from '../../../src/cli/server/logs/logger.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const lines = (isTTY: boolean, format?: 'json' | 'text'): readonly string[] => {
  const written: string[] = [];
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    written.push(String(text));
    return true;
  });
  const before = process.stderr.isTTY;
  process.stderr.isTTY = isTTY;
  onTestFinished(() => {
    process.stderr.isTTY = before;
    vi.restoreAllMocks();
  });
  const redact = (text: string): string => text.replaceAll('hunter2', '[secret]');
  const file = join(temporaryFolder(), 'config.json');
  writeFileSync(file, JSON.stringify(format === undefined ? {} : { logging: { format } }));
  const { log } = createLogger(loggingOf(loadConfig({ config: file }, {})), redact);
  log('an attempt\u001b[31m began', { why: 'hunter2 said\nso', attempt: 2, task_id: 'bd-a1' });
  return written;
};

test('a terminal gets lines for people, and what they are about comes first', () => {
  const [line] = lines(true);

  expect(line).toMatch(
    /^\d{4}-\S+Z info an attempt\S* began task_id=bd-a1 attempt=2 why="\[secret\] said.*so"\n$/,
  );
  expect(line).not.toContain('\u001b');
});

test('a pipe gets JSON, and the configuration chooses either', () => {
  const fields = {
    msg: expect.any(String),
    task_id: 'bd-a1',
    attempt: 2,
    why: '[secret] said\nso',
  };

  expect(JSON.parse(lines(false)[0] ?? '')).toMatchObject(fields);
  expect(JSON.parse(lines(true, 'json')[0] ?? '')).toMatchObject(fields);
  expect(lines(false, 'text')[0]).toContain(' task_id=bd-a1 attempt=2 ');
});
