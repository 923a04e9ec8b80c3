// A list of things to do in a file: add <text>, done <id>, list [--open] [--json]
import { existsSync, readFileSync, writeFileSync } from 'node:fs';

const file = process.env.TODO_FILE ?? 'todo.txt';
const [command, ...given] = process.argv.slice(2);
const known = command === 'list' ? ['--json', '--open'] : [];
const flags = given.filter((arg) => arg.startsWith('--'));
const args = given.filter((arg) => !arg.startsWith('--'));
const unknown = flags.find((flag) => !known.includes(flag));

const load = () =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => ({ done: line.startsWith('x '), text: line.slice(2) }))
    : [];
const save = (items) => writeFileSync(file, items.map(({ done, text }) => `${done ? 'x' : '-'} ${text}\n`).join(''));

const list = (items) => {
  const shown = items
    .map(({ done, text }, index) => ({ id: index + 1, text, done }))
    .filter(({ done }) => !(done && flags.includes('--open')));
  if (flags.includes('--json')) console.log(JSON.stringify(shown));
  else for (const { id, text, done } of shown) console.log(`${id} [${done ? 'x' : ' '}] ${text}`);
};

const items = load();
if (unknown !== undefined) {
  console.error(`unknown flag: ${unknown}`);
  process.exitCode = 2;
} else if (command === 'add') {
  save([...items, { done: false, text: args.join(' ') }]);
} else if (command === 'done') {
  const at = Number(args[0]) - 1;
  if (items[at] === undefined) {
    console.error(`no item ${args[0]}`);
    process.exitCode = 1;
  } else save(items.map((item, index) => (index === at ? { ...item, done: true } : item)));
} else if (command === 'list') {
  list(items);
} else {
  console.error('usage: todo add <text> | done <id> | list');
  process.exitCode = 2;
}
