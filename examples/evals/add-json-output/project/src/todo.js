// A list of things to do in a file: add <text>, done <id>, list
import { existsSync, readFileSync, writeFileSync } from 'node:fs';

const file = process.env.TODO_FILE ?? 'todo.txt';
const [command, ...args] = process.argv.slice(2);

const load = () =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => ({ done: line.startsWith('x '), text: line.slice(2) }))
    : [];
const save = (items) => writeFileSync(file, items.map(({ done, text }) => `${done ? 'x' : '-'} ${text}\n`).join(''));

const items = load();
if (command === 'add') {
  save([...items, { done: false, text: args.join(' ') }]);
} else if (command === 'done') {
  const at = Number(args[0]) - 1;
  if (items[at] === undefined) {
    console.error(`no item ${args[0]}`);
    process.exitCode = 1;
  } else save(items.map((item, index) => (index === at ? { ...item, done: true } : item)));
} else if (command === 'list') {
  items.forEach(({ done, text }, index) => {
    console.log(`${index + 1} [${done ? 'x' : ' '}] ${text}`);
  });
} else {
  console.error('usage: todo add <text> | done <id> | list');
  process.exitCode = 2;
}
