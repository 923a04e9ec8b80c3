import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));
const rows = readFileSync(`${root}docs/project/a2a.md`, 'utf8')
  .split('\n')
  .filter((line) => /^\| (?!rule)/.test(line));

test('every rule of A2A names a test that exists', () => {
  const missing = rows.filter((row) => {
    const [, file, title = ''] = /\| `([\w-]+\.test\.ts)`: (.+) \|$/.exec(row) ?? [];
    return (
      file === undefined || !readFileSync(`${root}test/http/a2a/${file}`, 'utf8').includes(title)
    );
  });

  expect(missing).toEqual([]);
  expect(rows.length).toBeGreaterThan(80);
});
