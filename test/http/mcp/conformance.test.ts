import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startServer } from '../../support/running.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const suite = '@modelcontextprotocol/conformance@0.2.0-alpha.12';
const client = join(root, 'test/support/mcp/conformance-client.ts');
const isNodeNew = Number(process.versions.node.split('.')[0]) >= 24;

const runSuite = (args: readonly string[]) =>
  new Promise<{ readonly output: string; readonly missing: boolean }>((resolve) => {
    const packages = isNodeNew ? ['-p', suite] : ['-p', 'node@24', '-p', suite];
    const options = { cwd: temporaryFolder(), timeout: 300_000, maxBuffer: 64 * 1024 * 1024 };
    execFile('npx', ['-y', ...packages, 'conformance', ...args], options, (error, out, problem) =>
      resolve({
        output: out + problem,
        missing: error !== null && /npm error|ENOENT/.test(problem),
      }),
    );
  });

/** The scenarios of a table in docs/project/mcp.md, and whether each passes. */
const rowsOf = (part: string) => {
  const text = readFileSync(join(root, 'docs/project/mcp.md'), 'utf8');
  const section = text.split('\n## ').find((each) => each.startsWith(part)) ?? '';
  return new Map(
    [...section.matchAll(/^\| `([\w/-]+)` \| ([a-z ]+) \|/gm)].map(([, name, result]) => [
      name ?? '',
      result === 'pass',
    ]),
  );
};

test.for(['2025-11-25', '2026-07-28'])(
  'the server passes what applies to it of the conformance suite for %s',
  { tags: ['slow'], timeout: 400_000 },
  async (revision, { skip }) => {
    const server = await startServer({ token: () => null });
    const ran = await runSuite([
      'server',
      '--url',
      `${server.base}/mcp`,
      '--requirements',
      revision,
    ]);
    skip(ran.missing, 'the conformance suite or Node 24 cannot be had from npm');

    const summary = ran.output.split('SUMMARY').at(1) ?? '';
    const results = [...summary.matchAll(/^([✓✗]) ([\w-]+): /gm)].filter(
      ([, , name = '']) => !name.startsWith('tasks-'),
    );
    const rows = rowsOf('Server');

    expect(results.length).toBeGreaterThan(30);
    expect(results.map(([, sign, name = '']) => [name, sign === '✓'])).toEqual(
      results.map(([, , name = '']) => [name, rows.get(name)]),
    );
  },
);

test('the client passes what applies to it of the conformance suite', {
  tags: ['slow'],
  timeout: 400_000,
}, async ({ skip }) => {
  const failed: string[] = [];
  const passing = [...rowsOf('Client')].filter(([, passes]) => passes).map(([name]) => name);
  const ofOldOnly = new Set(['initialize', 'sse-retry']);

  for (const name of passing) {
    const version = ofOldOnly.has(name) ? '2025-11-25' : '2026-07-28';
    const given = ['--scenario', name, '--spec-version', version, '--command', `node ${client}`];
    const ran = await runSuite(['client', ...given]);
    skip(ran.missing, 'the conformance suite or Node 24 cannot be had from npm');
    if (!/Passed: [1-9]\d*\/\d+, 0 failed/.test(ran.output)) failed.push(name);
  }

  expect(passing).toHaveLength(9);
  expect(failed).toEqual([]);
});
