// Writes docs/adr/README.md, and refuses a decision whose file name and title differ, and a number
// that is taken in twice.
import { readdirSync, readFileSync } from 'node:fs';
import { generate } from './generated.mjs';

const folder = new URL('../docs/adr/', import.meta.url);
const slugOf = (title) =>
  title
    .toLowerCase()
    .replace(/[`']/g, '')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');

const readDecision = (name) => {
  const text = readFileSync(new URL(name, folder), 'utf8');
  const [, number, title] = /^# (\d{4})\. (.+)\n/.exec(text) ?? [];
  const [, status] = /^- Status: (.+(?:\n {2}.+)*)$/m.exec(text) ?? [];
  if (title === undefined || status === undefined)
    throw new Error(`docs/adr/${name}: begin as 0000-template.md does`);
  const expected = `${number}-${slugOf(title)}.md`;
  if (name !== expected) throw new Error(`docs/adr/${name}: its title says ${expected}`);
  const [, takenIn = ''] = /^- Takes in: (.+(?:\n {2}.+)*)$/m.exec(text) ?? [];
  return {
    number,
    title,
    name,
    status: status.replace(/\n */g, ' ').replaceAll('|', '\\|'),
    takenIn: takenIn.match(/\d{4}/g) ?? [],
  };
};

const decisions = readdirSync(folder)
  .filter((name) => /^\d{4}-/.test(name) && name !== '0000-template.md')
  .sort()
  .map(readDecision);

const moved = decisions
  .flatMap(({ number, title, name, takenIn }) =>
    takenIn.map((old) => ({ old, now: `[${number}. ${title}](${name})` })),
  )
  .sort((a, b) => a.old.localeCompare(b.old));

const numbers = [...decisions.map(({ number }) => number), ...moved.map(({ old }) => old)];
const twice = numbers.find((number, index) => numbers.indexOf(number) !== index);
if (twice !== undefined) throw new Error(`docs/adr: ${twice} has two places`);

generate(
  'docs/adr/README.md',
  `# Decisions

The reasons behind the design, as they hold today. A decision that amends an earlier one is written
into it; its number is then in the second table, and git has its text. A number that is in neither
table was never used. Write a new one like [0000-template.md](0000-template.md); its file name is
its title. \`npm run docs\` writes this page.

| | decision | status |
|---|---|---|
${decisions.map(({ number, title, name, status }) => `| ${number} | [${title}](${name}) | ${status} |`).join('\n')}

## Numbers of earlier decisions

| | is part of |
|---|---|
${moved.map(({ old, now }) => `| ${old} | ${now} |`).join('\n')}
`,
);
