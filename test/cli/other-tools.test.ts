import { expect, test } from 'vitest';
import { commandTable } from '../../src/cli/command-table.ts';
import { hintFor } from '../../src/cli/output/report-error.ts';
import { adviceOfAll } from '../../src/cli/words/other-tools.ts';
import { correctionOf, readCommand } from '../../src/cli/words/read-command.ts';

const namesOfOurs = commandTable.flatMap(({ name, aliases = [] }) => [name, ...aliases]);

const values: Readonly<Record<string, string>> = {
  '<task_id>': 'bd-a',
  '<n>': '3',
  '<lines>': '20',
  '<seconds>': '60',
  '<key>': 'cost',
  '<role>': 'tester',
};

const wordsOf = (line: string): string[] =>
  (line.match(/"[^"]*"|\S+/g) ?? []).map((word) => values[word] ?? word);

/** The command lines of ours in an advice, each up to a pipe. */
const linesIn = (use: string): readonly string[] =>
  [...use.matchAll(/agent ((?:[^,|]|, (?!or |agent |which ))+)/g)].map(([, line = '']) =>
    line.trim(),
  );

/** What a command needs before its flags. */
const required = (command: string): readonly string[] =>
  (commandTable.find(({ name }) => name === command)?.words ?? [])
    .filter(({ optional }) => optional !== true)
    .map(({ name, choices }) => choices?.at(-1) ?? (name === 'description' ? 'text' : 'bd-a'));

test.each(adviceOfAll.map((each) => [...each] as const))(
  '%s %s is answered with what works: %s',
  (command, word, use) => {
    const lines = linesIn(use);
    const flags = command === null ? [] : (use.match(/^--.+?(?=$| or |, )/g) ?? []);

    for (const line of lines) expect(readCommand(wordsOf(line)).kind).toBe('run');
    for (const flag of flags)
      expect(readCommand([command ?? '', ...required(command ?? ''), ...wordsOf(flag)]).kind).toBe(
        'run',
      );
    expect(lines.length + flags.length > 0 || use.includes('NO_COLOR')).toBe(true);
    if (command === null) expect(namesOfOurs).not.toContain(word);
  },
);

test.each([
  [['get', 'tasks'], 'unknown command: get; use: agent list, or agent show <task_id>'],
  [['complete', 'bd-a'], 'unknown command: complete; use: agent close <task_id>'],
  [['help', 'inspect'], 'use: agent show <task_id> --json'],
  [
    ['diff', '--stat', 'bd-a'],
    'diff does not take --stat; use: agent diff <task_id> | git apply --stat',
  ],
  [['logs', '--tail', '20', 'bd-a'], 'use: agent logs <task_id> | tail -n <lines>'],
  [['logs', '-n20', 'bd-a'], 'use: agent logs <task_id> | tail -n <lines>'],
  [['list', '-ojson'], 'list does not take -ojson; use: --json'],
  [['show', 'bd-a', '--output=json'], 'show does not take --output; use: --json'],
  [['tester', 'bd-a', '--detach'], 'tester does not take --detach; use: --async'],
  [['doctor', '--detach'], 'unknown flag: --detach; see: agent doctor --help'],
] as const)('%j is refused with the words of ours', (words, message) => {
  expect(() => readCommand(words)).toThrow(message);
});

test('a command of another tool is not offered as one that it is like', () => {
  expect(correctionOf(['complete', 'bd-a'])).toBeNull();
});

test('the sub-commands of gh run are no tasks', () => {
  expect(hintFor('task_not_found', { task_id: 'view' })).toBe('use: agent show <task_id>');
});
