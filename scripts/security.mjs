// Tries every road of test/security/roads.json, as root and as an ordinary user, and prints the
// result of each. A road is held only when each test named for it ran and passed.
import { spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));
const roads = JSON.parse(readFileSync(join(root, 'test', 'security', 'roads.json'), 'utf8'));
const named = roads.flatMap(({ tests }) => tests);
const ordinary = 65_534;

/** The titles that a row covers: `%s` is any case, or the named one. */
const patternOf = ({ test, case: value }) => {
  const literal = (text) => text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');
  const [first, ...rest] = test.split(/%[sjdi]|\$\{\w+\}|\$\w+/).map(literal);
  return [first, ...rest].join(
    value === undefined ? '[\\s\\S]*' : `[\\s\\S]*${literal(value)}[\\s\\S]*`,
  );
};

const vitest = (report) => [
  ...[join(root, 'node_modules', 'vitest', 'vitest.mjs'), 'run', '--configLoader', 'runner'],
  ...[
    '--reporter',
    'json',
    '--outputFile',
    report,
    '-t',
    [...new Set(named.map(patternOf))].join('|'),
  ],
  ...new Set(named.map(({ file }) => `test/${file}`)),
];

const read = (report) =>
  JSON.parse(readFileSync(report, 'utf8')).testResults.flatMap(({ name, assertionResults }) =>
    assertionResults.map(({ title, status, meta, failureMessages }) => ({
      file: name.slice(join(root, 'test').length + 1),
      ...{ title, status, said: meta?.happened, why: failureMessages?.[0] },
    })),
  );

/**
 * The results of all named tests, in a new home and temporary folder; null when they could not run.
 */
const resultsAs = (who, through, uid) => {
  const home = mkdtempSync(join(tmpdir(), 'agent-security-'));
  try {
    if (uid !== null) chownSync(home, uid, uid);
    const env = { ...process.env, HOME: home, TMPDIR: home, AGENT_TEST_SECURITY: '1' };
    const [program, ...args] = [...through, process.execPath, ...vitest(join(home, 'report.json'))];
    console.log(`trying ${roads.length} roads as ${who} …`);
    const { stderr } = spawnSync(program, args, {
      cwd: root,
      env,
      encoding: 'utf8',
      maxBuffer: 1e9,
    });
    if (existsSync(join(home, 'report.json'))) return read(join(home, 'report.json'));
    console.error(`the tests did not run as ${who}: ${stderr}`);
    return null;
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
};

const shortened = (text, length) => {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > length ? `${line.slice(0, length - 1)}…` : line;
};

const verdictOf = ({ tests }, results) => {
  const found = tests.map((test) => {
    const pattern = new RegExp(`^${patternOf(test)}$`);
    return {
      test,
      runs: results.filter(({ file, title }) => file === test.file && pattern.test(title)),
    };
  });
  const all = found.flatMap(({ runs }) => runs);
  const failed = all.find(({ status }) => status === 'failed');
  if (failed) return `FAILED: ${shortened(failed.title, 80)}`;
  const silent = found.find(
    ({ runs }) => runs.length === 0 || runs.some(({ status }) => status !== 'passed'),
  );
  if (silent) return `NOT RUN: ${shortened(silent.test.test, 80)}`;
  const tried = `${all.length} ${all.length === 1 ? 'test' : 'tests'}`;
  const said = [...new Set(all.flatMap((run) => run.said ?? []))].map(
    (text) => `“${shortened(text, 110)}”`,
  );
  if (said.length === 0) return `held (${tried})`;
  const more = said.length > 2 ? `, and ${said.length - 2} more` : '';
  return `held or refused (${tried}): ${said.slice(0, 2).join(', ')}${more}`;
};

const asOrdinary = ['setpriv', `--reuid=${ordinary}`, `--regid=${ordinary}`, '--clear-groups'];
const runs =
  process.getuid?.() === 0
    ? [
        ['root', resultsAs('root', [], null)],
        ['an ordinary user', resultsAs('an ordinary user', asOrdinary, ordinary)],
      ]
    : [['you', resultsAs('you (run it as root to try an ordinary user as well)', [], null)]];

const verdicts = roads.map((road) =>
  runs.map(([who, results]) => {
    if (results === null) return 'NOT RUN';
    return road.root_only !== undefined && who !== 'root'
      ? `only as root: ${road.root_only}`
      : verdictOf(road, results);
  }),
);
const cell = (text) => text.replaceAll('|', '\\|');
const columns = runs.map(([who]) => `as ${who}`).join(' | ');
console.log(`\n| | what was tried | ${columns} |\n|---|---|${'---|'.repeat(runs.length)}`);
for (const [index, { id, road }] of roads.entries())
  console.log(`| ${id} | ${cell(road)} | ${verdicts[index].map(cell).join(' | ')} |`);

const count = (word) => verdicts.flat().filter((verdict) => verdict.startsWith(word)).length;
const counted = ['held', 'FAILED', 'NOT RUN'].map((word) => `${count(word)} ${word.toLowerCase()}`);
console.log(`\n${counted.join(', ')}`);
process.exitCode = count('FAILED') + count('NOT RUN') === 0 ? 0 : 1;
