import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));
const rows = readFileSync(`${root}docs/project/spec.md`, 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| ') && !line.startsWith('| clause'))
  .map((line) =>
    line
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );

const filesIn = (cell: string): readonly string[] =>
  [...cell.matchAll(/`([^`]+\.(?:ts|mjs|md|json))`/g)].map(([, file]) => file ?? '');
const exists = (file: string, folder: string): boolean =>
  existsSync(`${root}${folder}${file}`) || existsSync(root + file);

test('every clause names its code and its test, or says that they are missing', () => {
  expect(rows.length).toBeGreaterThan(70);
  for (const [clause, code = '', shown = '', ...more] of rows) {
    expect(clause).not.toBe('');
    expect(more).toEqual([]);
    if (/^(not yet|stated in)/.test(code)) expect(shown).toMatch(/^none/);
    else
      expect([clause, filesIn(code).length > 0, filesIn(shown).length > 0]).toEqual([
        clause,
        true,
        true,
      ]);
  }
});

test('every named file exists', () => {
  const missing = rows.flatMap(([, code = '', shown = '']) => [
    ...filesIn(code).filter((file) => !exists(file, 'src/')),
    ...filesIn(shown).filter((file) => !exists(file, 'test/')),
  ]);

  expect(missing).toEqual([]);
});

test('the top level is what the specification names', () => {
  for (const name of [
    'package.json',
    'tsconfig.json',
    'src/machines',
    'src/actors',
    'src/http',
    'src/cli',
    'configs',
    'test',
    'docs',
  ])
    expect([name, existsSync(root + name)]).toEqual([name, true]);
  const licences = readFileSync(`${root}dist/THIRD_PARTY_LICENSES.txt`, 'utf8');
  for (const name of [
    'xstate',
    'fastify',
    'fastify-sse-v2',
    'json-rpc-2.0',
    'yargs',
    'zod',
    'openai',
    'execa',
    'pino',
  ])
    expect(licences).toContain(`\n${name}@`);
});
