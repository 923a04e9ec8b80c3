#!/usr/bin/env node
/**
 * Makes the reports of go, pytest, c8, nyc and node that the tests of the gates read, with the real
 * tools: `apt-get install golang-go python3-pytest python3-pytest-cov`, then
 * `node scripts/gate-reports.mjs`, which takes c8 and nyc from npm. PYTHON names another Python.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const reports = join(import.meta.dirname, '..', 'test', 'actors', 'gates', 'reports');
const python = process.env.PYTHON ?? '/usr/bin/python3';
const folder = mkdtempSync(join(tmpdir(), 'gate-reports-'));
cpSync(join(reports, 'sources'), folder, { recursive: true });

/** Tests that fail are wanted. @returns what it printed, as `> file` keeps it */
const run = (cwd, command, ...words) => {
  const env = { ...process.env, GOPROXY: 'off', GOFLAGS: '', PYTHONDONTWRITEBYTECODE: '1' };
  const ended = spawnSync(command, words, { cwd: join(folder, cwd), env, encoding: 'utf8' });
  if (ended.error !== undefined) throw ended.error;
  return ended.stdout;
};
const keep = (name, text) =>
  writeFileSync(
    join(reports, name),
    text.replaceAll(folder, '/project').replace(/ hostname="[^"]*"/g, ' hostname="host"'),
  );
const read = (...path) => readFileSync(join(folder, ...path), 'utf8');

const goTests = (...words) => run('go', 'go', 'test', '-json', '-count=1', ...words);
keep('go-test.json', goTests('-coverprofile=cover.out', '-coverpkg=./...', './sum', './good'));
for (const mode of ['set', 'count', 'atomic']) {
  goTests(`-covermode=${mode}`, '-coverprofile=cover.out', '-coverpkg=./...', './sum', './good');
  keep(`go-cover-${mode}.out`, read('go', 'cover.out'));
}
keep('go-test-passed.json', goTests('./good'));
keep('go-test-broken-build.json', goTests('./good', './broken'));
keep('go-test-exits.json', goTests('./exits'));

const pytest = (...words) =>
  run('python', python, '-m', 'pytest', '-p', 'no:cacheprovider', ...words);
pytest('--junitxml=junit.xml', '--cov=calc', '--cov-report=', 'test_calc.py');
keep('pytest-junit.xml', read('python', 'junit.xml'));
for (const kind of ['xml', 'json', 'lcov']) {
  run('python', python, '-m', 'coverage', kind, '-o', `coverage.${kind}`);
  keep(`pytest-coverage.${kind}`, read('python', `coverage.${kind}`));
}
pytest('--junitxml=uncollected.xml', 'uncollected');
keep('pytest-uncollected.xml', read('python', 'uncollected.xml'));

const tools = join(folder, 'tools');
mkdirSync(tools);
run('tools', 'npm', 'install', '--prefix', tools, '--no-audit', '--no-fund', 'c8', 'nyc');
const tool = (name) => join(tools, 'node_modules', '.bin', name);
const kinds = {
  'coverage-summary.json': 'json-summary',
  'coverage-final.json': 'json',
  'lcov.info': 'lcovonly',
  'cobertura-coverage.xml': 'cobertura',
};
const reporters = Object.values(kinds).map((kind) => `--reporter=${kind}`);
const both = ['--all', '--include', 'src/**', '--report-dir', 'coverage', ...reporters];
for (const name of ['c8', 'nyc']) {
  run('javascript', tool(name), ...both, 'node', 'test/sum.test.js');
  for (const file of Object.keys(kinds))
    keep(`${name}-${file}`, read('javascript', 'coverage', file));
}
const node = ['--test', '--experimental-test-coverage', '--test-reporter=lcov'];
keep('node-lcov.info', run('javascript', process.execPath, ...node, 'test/'));

const versionOf = (name) => JSON.parse(read('tools', 'node_modules', name, 'package.json')).version;
const version = (pattern, ...command) =>
  pattern.exec(execFileSync(command[0], command.slice(1), { encoding: 'utf8' }))?.[1];
const versions = {
  go: version(/go version go(\S+)/, 'go', 'version'),
  pytest: version(/pytest (\S+)/, python, '-m', 'pytest', '--version'),
  coverage: version(/version (\S+)/, python, '-m', 'coverage', '--version'),
  c8: versionOf('c8'),
  nyc: versionOf('nyc'),
  node: process.versions.node,
};
writeFileSync(join(reports, 'versions.json'), `${JSON.stringify(versions, null, 2)}\n`);
rmSync(folder, { recursive: true, force: true });
