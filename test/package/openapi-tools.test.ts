import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect } from 'vitest';
import { testUnless } from '../support/needs.ts';
import { noRegistry, runPackage } from '../support/registry.ts';
import { temporaryFolder } from '../support/temporary.ts';

const root = join(import.meta.dirname, '..', '..');
const openapi = join(root, 'docs', 'reference', 'openapi.json');
const limit = { tags: ['slow'], timeout: 300_000 };

testUnless(noRegistry)(
  'redocly finds nothing in the description of the server',
  limit,
  async () => {
    const cwd = temporaryFolder();
    const line = ['redocly', 'lint', '--extends', 'recommended', '--format', 'json', openapi];

    const { stdout } = await runPackage(['@redocly/cli@2.77.0'], line, cwd);

    expect(JSON.parse(stdout).problems).toEqual([]);
  },
);

testUnless(noRegistry)('the types of openapi-typescript compile', limit, async () => {
  const cwd = temporaryFolder();
  const packages = ['openapi-typescript@7.13.0', 'typescript@5.9.3'];
  await runPackage(packages, ['openapi-typescript', openapi, '-o', 'api.ts'], cwd);
  const use = `import type { components, operations } from './api.ts';
    const status: components['schemas']['Task']['status'] = 'complete';
    export type Stream = operations['getStreamTaskId'];
    console.log(status);`;
  writeFileSync(join(cwd, 'use.ts'), use);
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const options = ['--noEmit', '--strict', '--allowImportingTsExtensions', '--module', 'nodenext'];

  const { all } = await execa(process.execPath, [tsc, ...options, 'use.ts'], {
    ...{ cwd, all: true, reject: false },
  });

  expect(all).toBe('');
  expect(readFileSync(join(cwd, 'api.ts'), 'utf8')).toContain('postA2aExecute');
});
