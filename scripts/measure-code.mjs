// Prints the shape of src. `npm run measure -- --functions --ports --casts --names --folders` also
// lists functions over 50 lines, interfaces of more than 8 functions, casts, names declared in more
// than one file, and which folder imports which. `--check` fails where src became worse than
// `scripts/measure.json` says, and `--write` writes that file. `--way` runs a task (`way.mjs`).
//
// Tokens are the leaves of the syntax trees, without comments. Lines of logic hold more than
// brackets and are no import. Generated files count in none of the two.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
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
const folderPairs = new Map();
const size = { files: 0, tokens: 0, codeLines: 0, importLines: 0, logicLines: 0 };
const declaredIn = new Map();
let longLines = 0;

const opensWithRelativeClause = /^\/\*\*\s*(What|Who|Whom|Whose|How|Whether|Of|Which|Where|When)\b/;
const isComment = ({ kind }) =>
  kind >= ts.SyntaxKind.FirstJSDocNode && kind <= ts.SyntaxKind.LastJSDocNode;
const leavesOf = (node, source) => {
  const children = node.getChildren(source).filter((child) => !isComment(child));
  if (children.length > 0) return children.flatMap((child) => leavesOf(child, source));
  return node.getWidth(source) > 0 ? [node] : [];
};
const isModuleLink = (statement) =>
  ts.isImportDeclaration(statement) ||
  (ts.isExportDeclaration(statement) && statement.moduleSpecifier !== undefined);

/** Adds a file to `size`. */
const addSize = (source) => {
  const linesOf = (node) => {
    const [from, to] = [node.getStart(source), node.getEnd()].map(
      (position) => source.getLineAndCharacterOfPosition(position).line,
    );
    return Array.from({ length: to - from + 1 }, (_, offset) => from + offset);
  };
  const leaves = leavesOf(source, source);
  const says = leaves.filter((leaf) => /[\w$'"`]/.test(leaf.getText(source)));
  const imports = new Set(source.statements.filter(isModuleLink).flatMap(linesOf));
  size.files += 1;
  size.tokens += leaves.length;
  size.codeLines += new Set(leaves.flatMap(linesOf)).size;
  size.importLines += imports.size;
  size.logicLines += [...new Set(says.flatMap(linesOf))].filter(
    (line) => !imports.has(line),
  ).length;
};

/** Notes that the folder of a file imports from that of another. */
const addFolderPairs = (file, source) => {
  for (const { moduleSpecifier } of source.statements.filter(isModuleLink)) {
    if (!moduleSpecifier.text.startsWith('.')) continue;
    const [from, to] = [dirname(file), dirname(join(dirname(file), moduleSpecifier.text))];
    if (from !== to) folderPairs.set(`${from} ${to}`, { from, to });
  }
};

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
  addFolderPairs(file, source);
  if (!text.startsWith('// Generated')) addSize(source);
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

const mutual = [...folderPairs.values()].filter(
  ({ from, to }) => from < to && folderPairs.has(`${to} ${from}`),
);
/** Pairs of folders of src/actors, with all that is below them. */
const roomOf = (folder) => /^src\/actors\/[^/]+/.exec(folder)?.[0] ?? null;
const rooms = new Set(
  [...folderPairs.values()]
    .map(({ from, to }) => [roomOf(from), roomOf(to)])
    .filter(([from, to]) => from !== null && to !== null && from !== to)
    .map((pair) => pair.join(' ')),
);
const mutualRooms = [...rooms].filter((pair) => {
  const [from, to] = pair.split(' ');
  return from < to && rooms.has(`${to} ${from}`);
});
const percent = (part, whole) => `${((part / whole) * 100).toFixed(1)} %`;

const rows = [
  ['tokens', String(size.tokens)],
  ['files', `${files.length}, ${total} lines, median ${median}`],
  ['lines of logic a file', (size.logicLines / size.files).toFixed(0)],
  ['imports, of the lines of code', percent(size.importLines, size.codeLines)],
  [
    'folders with more than 20 files',
    String([...looseFiles.values()].filter((n) => n > 20).length),
  ],
  ['folder imports folder', `${folderPairs.size} pairs, ${mutual.length} of them both ways`],
  ['folders of src/actors that import each other', mutualRooms.join(', ') || '0'],
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
for (const [name, value] of rows) console.log(`${name.padEnd(45)} ${value}`);

const lists = {
  '--functions': functions
    .filter(({ lines }) => lines > 50)
    .map(({ name, lines, where }) => `${lines} lines: ${name}, ${where}`),
  '--ports': largePorts.map(
    ({ name, members, where }) => `${members} functions: ${name}, ${where}`,
  ),
  '--casts': casts,
  '--folders': [...folderPairs.values()].map(
    ({ from, to }) => `${from} -> ${to}${folderPairs.has(`${to} ${from}`) ? ' (both ways)' : ''}`,
  ),
  '--names': shared.map(([name, where]) => `${name}: ${[...where].join(', ')}`),
};
for (const [option, list] of Object.entries(lists))
  if (process.argv.includes(option)) console.log(`\n${option}\n${list.join('\n')}`);

const limitsFile = 'scripts/measure.json';
const held = {
  tokens: size.tokens,
  files: files.length,
  'folders with more than 20 files': [...looseFiles.values()].filter((n) => n > 20).length,
  'folders of src/actors that import each other': mutualRooms.length,
  'functions over 80 lines': functions.filter(({ lines }) => lines > 80).length,
  casts: casts.length,
};
if (process.argv.includes('--write'))
  writeFileSync(limitsFile, `${JSON.stringify(held, null, 2)}\n`);
if (process.argv.includes('--check'))
  for (const [name, limit] of Object.entries(JSON.parse(readFileSync(limitsFile, 'utf8')))) {
    if (held[name] <= limit) continue;
    console.error(
      `src: ${name} ${held[name]}, at most ${limit}; make it smaller, or run npm run measure -- --write and give the reason in the commit`,
    );
    process.exitCode = 1;
  }
if (process.argv.includes('--way')) await import('./way.mjs');
