// Prints the shape of src. `npm run measure -- --functions --ports --casts --names` also lists
// functions over 50 lines, interfaces of more than 8 functions, casts, and names declared in more
// than one file.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import ts from 'typescript';

const files = readdirSync('src', { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
  .map((entry) => join(entry.parentPath, entry.name))
  .sort();

const lineCounts = [];
const functions = [];
const ports = [];
const casts = [];
const docstrings = [];
const looseFiles = new Map();
const declaredIn = new Map();
let longLines = 0;

const opensWithRelativeClause = /^\/\*\*\s*(What|Who|Whom|Whose|How|Whether|Of|Which|Where|When)\b/;
const isFunction = (node) =>
  ts.isFunctionDeclaration(node) ||
  ts.isFunctionExpression(node) ||
  ts.isArrowFunction(node) ||
  ts.isMethodDeclaration(node);

/** The name that a function is declared, assigned or passed under. */
const nameOf = (node) => {
  const named = [node, node.parent].find(({ name }) => name !== undefined);
  if (named !== undefined) return named.name.getText();
  return ts.isCallExpression(node.parent)
    ? `argument of ${node.parent.expression.getText().split('\n')[0]}`
    : 'anonymous';
};
const isMethod = (member) =>
  ts.isMethodSignature(member) ||
  (ts.isPropertySignature(member) &&
    member.type !== undefined &&
    ts.isFunctionTypeNode(member.type));

for (const file of files) {
  const text = readFileSync(file, 'utf8');
  const lines = text.split('\n');
  lineCounts.push({ file, lines: lines.length - 1 });
  longLines += lines.filter((line) => line.length > 100).length;
  looseFiles.set(dirname(file), (looseFiles.get(dirname(file)) ?? 0) + 1);
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const lineOf = (position) => source.getLineAndCharacterOfPosition(position).line + 1;
  docstrings.push(...(text.match(/\/\*\*[\s\S]*?\*\//g) ?? []));

  const declare = (name) => declaredIn.set(name, (declaredIn.get(name) ?? new Set()).add(file));
  for (const statement of source.statements) {
    if (ts.isVariableStatement(statement)) {
      for (const { name } of statement.declarationList.declarations)
        if (ts.isIdentifier(name)) declare(name.text);
    } else if (statement.name !== undefined && ts.isIdentifier(statement.name))
      declare(statement.name.text);
  }
  const visit = (node) => {
    if (isFunction(node)) {
      const [from, to] = [lineOf(node.getStart()), lineOf(node.getEnd())];
      functions.push({ name: nameOf(node), where: `${file}:${from}`, lines: to - from + 1 });
    }
    if (ts.isInterfaceDeclaration(node)) {
      const members = node.members.filter(isMethod).length;
      ports.push({ name: node.name.text, where: `${file}:${lineOf(node.getStart())}`, members });
    }
    if (ts.isAsExpression(node) && node.type.getText() !== 'const')
      casts.push(`${file}:${lineOf(node.getStart())} ${node.getText().split('\n')[0]}`);
    ts.forEachChild(node, visit);
  };
  visit(source);
}

const largePorts = ports.filter(({ members }) => members > 8).sort((a, b) => b.members - a.members);
const byLines = (a, b) => b.lines - a.lines;
lineCounts.sort(byLines);
functions.sort(byLines);
const total = lineCounts.reduce((sum, { lines }) => sum + lines, 0);
const median = lineCounts[Math.floor(lineCounts.length / 2)]?.lines ?? 0;
const relative = docstrings.filter((docstring) => opensWithRelativeClause.test(docstring)).length;
const shared = [...declaredIn]
  .filter(([, where]) => where.size > 1)
  .sort((a, b) => b[1].size - a[1].size);

const rows = [
  ['files', `${files.length}, ${total} lines, median ${median}`],
  ['largest file', `${lineCounts[0]?.lines} lines, ${lineCounts[0]?.file}`],
  ['longest function', `${functions[0]?.lines} lines, ${functions[0]?.where}`],
  ['functions over 80 lines', String(functions.filter(({ lines }) => lines > 80).length)],
  ['interfaces of more than 8 functions', String(largePorts.length)],
  ['docstrings per 1,000 lines', ((docstrings.length / total) * 1_000).toFixed(0)],
  ['of them opened by a relative clause', `${((relative / docstrings.length) * 100).toFixed(0)} %`],
  [
    'loose files in src/actors, src/cli',
    `${looseFiles.get('src/actors')}, ${looseFiles.get('src/cli')}`,
  ],
  ['lines over 100 columns', String(longLines)],
  ['casts (as, but const)', String(casts.length)],
  ['top-level names in more than one file', String(shared.length)],
];
for (const [name, value] of rows) console.log(`${name.padEnd(38)} ${value}`);

const lists = {
  '--functions': functions
    .filter(({ lines }) => lines > 50)
    .map(({ name, lines, where }) => `${lines} lines: ${name}, ${where}`),
  '--ports': largePorts.map(
    ({ name, members, where }) => `${members} functions: ${name}, ${where}`,
  ),
  '--casts': casts,
  '--names': shared.map(([name, where]) => `${name}: ${[...where].join(', ')}`),
};
for (const [option, list] of Object.entries(lists))
  if (process.argv.includes(option)) console.log(`\n${option}\n${list.join('\n')}`);
