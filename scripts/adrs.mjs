// Writes docs/adr/README.md, and refuses a decision whose file name and title differ.
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
  return { number, title, name, status: status.replace(/\n */g, ' ').replaceAll('|', '\\|') };
};

const decisions = readdirSync(folder)
  .filter((name) => /^\d{4}-/.test(name) && name !== '0000-template.md')
  .sort()
  .map(readDecision);

generate(
  'docs/adr/README.md',
  `# Decisions

The reasons behind the design. A decision that another one replaced says so. A number that is
missing was never used. Write a new one like [0000-template.md](0000-template.md); its file name is
its title. \`npm run docs\` writes this page.

| | decision | status |
|---|---|---|
${decisions.map(({ number, title, name, status }) => `| ${number} | [${title}](${name}) | ${status} |`).join('\n')}
`,
);
