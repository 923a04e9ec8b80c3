// Writes docs/project/museum.md from test/museum.json; with --check, fails when the file has
// drifted. Also fails when a row is incomplete or names a missing test.
import { existsSync, readFileSync } from 'node:fs';
import { generate } from './generated.mjs';

const tests = new URL('../test/', import.meta.url);
const parts = JSON.parse(readFileSync(new URL('museum.json', tests), 'utf8'));
const sources = new Map();

/** The source of a test file, or null. */
const sourceOf = (file) => {
  if (!sources.has(file)) {
    const url = new URL(file, tests);
    sources.set(file, existsSync(url) ? readFileSync(url, 'utf8').replaceAll("\\'", "'") : null);
  }
  return sources.get(file);
};

/** True when a source has the text as a literal, or as the beginning of a template literal. */
const isLiteralIn = (source, text) =>
  ["'", '"', '`'].some(
    (quote) => source.includes(quote + text + quote) || source.includes(`${quote + text}\${`),
  );

const problemsOf = ({ file, of, test, case: values = [] }) => {
  const source = sourceOf(file);
  if (source === null) return [`there is no file test/${file}`];
  return [...(of === undefined ? [] : [of]), test, ...values]
    .filter((text) => !isLiteralIn(source, text))
    .map((text) => `test/${file} has no test or case ${JSON.stringify(text)}`);
};

const rowProblems = ({ id, wrong, instead, tests: named = [], later }) => [
  ...(wrong && instead ? [] : [`${id}: says too little`]),
  ...(named.length > 0 || later ? [] : [`${id}: names no test, and not why`]),
  ...named.flatMap(problemsOf).map((problem) => `${id}: ${problem}`),
];

const partProblems = ({ id: letter, count, rows }) => {
  const wanted = Array.from({ length: count }, (_, index) => letter + (index + 1));
  const given = rows.map(({ id }) => id);
  const missing = wanted.filter((id) => !given.includes(id)).map((id) => `${id} is missing`);
  const strange = given
    .filter((id, index) => !wanted.includes(id) || given.indexOf(id) !== index)
    .map((id) => `${id} is not one of ${wanted[0]} to ${wanted.at(-1)}, or comes twice`);
  return [...missing, ...strange, ...rows.flatMap(rowProblems)];
};

const problems = parts.flatMap(partProblems);
if (problems.length > 0) {
  console.error(`test/museum.json:\n${problems.map((problem) => `- ${problem}`).join('\n')}`);
  process.exit(1);
}

const cell = (text) => text.replaceAll('|', '\\|').replaceAll('\n', ' ');

/** The title for people: with its cases filled in, and runtime values left open. */
const titleOf = ({ of, test, case: values = [] }) => {
  const left = [...values];
  const title = test
    .replace(/%[sjdi]/g, (place) => left.shift() ?? place)
    .replace(/\$\{[^}]*\}/g, '…');
  return of === undefined ? title : `${of.replace(/:$/, '')} › ${title}`;
};

const shownBy = ({ tests: named = [], later }) => {
  const lines = named.map((test) => `${cell(titleOf(test))} (\`${test.file}\`)`);
  return [...lines, ...(later === undefined ? [] : [`*Not yet: ${cell(later)}.*`])].join('<br>');
};

const section = ({ title, says, rows }) =>
  [
    `## ${title}\n`,
    `${says}\n`,
    '| | what went wrong | what we do | shown by |',
    '|---|---|---|---|',
    ...rows.map(
      (row) => `| ${row.id} | ${cell(row.wrong)} | ${cell(row.instead)} | ${shownBy(row)} |`,
    ),
    '',
  ].join('\n');

const rows = parts.flatMap((part) => part.rows);
const named = new Set(
  rows.flatMap((row) => row.tests ?? []).map(({ file, of, test }) => [file, of, test].join()),
);
const waiting = rows.filter(({ later }) => later !== undefined).map(({ id }) => id);

const text = [
  '# Known bugs of services like this one\n',
  'Generated from `test/museum.json` by `npm run docs`. The check fails when a bug is missing, or when a\ntest that a row names is not in its file.\n',
  `${rows.length} bugs that services like this one had, what this service does instead, and the ${named.size} tests that\nguard it. Parts of ${waiting.join(', ')} wait for features that are not built. Files are below \`test/\`; a\ntitle with \`%s\` stands for all cases of its table.\n`,
  ...parts.map(section),
].join('\n');

generate('docs/project/museum.md', text);
