import { expect, test } from 'vitest';
import { commandTable } from '../../src/cli/command-table.ts';
import { createIo } from '../../src/cli/output/io.ts';
import { renderCommandHelp, renderHelp } from '../../src/cli/words/help.ts';
import { type UsageCode, usageCodes } from '../../src/cli/words/messages.ts';
import { type Reading, readCommand } from '../../src/cli/words/read-command.ts';
import { bin } from '../support/cli.ts';

/** One command line for each message about a line that was written wrongly. */
const wrong: Readonly<Record<UsageCode, readonly [words: readonly string[], message: string]>> = {
  command_missing: [['--squash'], '--squash needs a command; see: agent --help'],
  unknown_command: [['shwo', 'bd-a'], 'unknown command: shwo; did you mean: agent show?'],
  other_tool: [
    ['stop', 'bd-a'],
    'unknown command: stop; use: agent cancel <task_id>, or agent server stop',
  ],
  unknown_flag: [['merge', 'bd-a', '--sqash'], 'unknown flag: --sqash; did you mean --squash?'],
  foreign_flag: [['list', '--squash'], 'list does not take --squash; see: agent list --help'],
  text_with_dash: [
    ['create', '- milk'],
    '"- milk" begins like a flag; text that begins with - goes after --',
  ],
  value_missing: [
    ['create', 'x', '--title'],
    '--title needs a value: --title <text>; a value like a flag is written --title=<text>',
  ],
  value_of_switch: [['list', '--json=maybe'], '--json takes no value'],
  number_expected: [['create', 'x', '--priority', 'high'], '--priority needs a number, not "high"'],
  choice_expected: [
    ['server', 'strat'],
    'server <action> is one of start, stop, restart, status, logs; not "strat"; did you mean start?',
  ],
  given_twice: [
    ['list', '--project', 'a', '--project', 'b'],
    '--project is given twice; give it once',
  ],
  not_together: [
    ['respond', 'bd-a', '--allow', '--deny'],
    '--allow and --deny cannot be given together',
  ],
  flag_of_action: [
    ['server', 'stop', '-f'],
    'server stop does not take --follow; it belongs to server logs',
  ],
  flag_needed: [['create', 'x', '--run'], '--run needs --role <role>'],
  word_missing: [['close'], 'close needs <task_ids...>: agent close <task_ids...>'],
  words_extra: [['show', 'bd-a', 'bd-b'], 'show does not take "bd-b": one task at a time'],
};

test('every message has a line that provokes it', () => {
  expect(Object.keys(wrong).sort()).toEqual([...usageCodes].sort());
});

test.each(Object.entries(wrong))('%s', (_, [words, message]) => {
  expect(() => readCommand(words)).toThrow(message);
});

test.each([
  [['list', '--sttus', 'queued'], 'unknown flag: --sttus; did you mean --status?'],
  [['list', '--maxTurns=3'], 'unknown flag: --maxTurns; see: agent list --help'],
  [['list', '-x'], 'unknown flag: -x; see: agent list --help'],
  [['list', '--no-project'], 'unknown flag: --no-project; did you mean --project?'],
  [['list', '--status', '--json'], '--status needs a value: --status <status>'],
  [['--nonsense'], 'unknown flag: --nonsense; see: agent --help'],
  [['enginer', 'mend it'], 'unknown role "enginer"; the roles are engineer, tester'],
  [['help', 'shwo'], 'unknown command: shwo; did you mean: agent show?'],
  [['version', 'now'], 'version does not take "now": see: agent --help'],
])('%j is refused in our own words', (words, message) => {
  expect(() => readCommand(words)).toThrow(message);
});

const argsOf = (words: readonly string[]): object => {
  const read = readCommand(words);
  expect(read.kind).toBe('run');
  return (read as Extract<Reading, { kind: 'run' }>).args;
};

test.each([
  [['create', '--', '- milk'], { description: '- milk' }],
  [['create', 'x', '--title=-x', '--priority', '-1'], { title: '-x', priority: -1 }],
  [['create', 'x', '--label', 'a', '--label=b'], { label: ['a', 'b'] }],
  [['logs', '-f', 'bd-a'], { follow: true, task_id: 'bd-a' }],
  [['doctor', '--model', '--json'], { model: true }],
  [['engineer', '--model', 'scripted', 'bd-a'], { model: 'scripted' }],
  [['--model', 'scripted', 'engineer', 'bd-a'], { model: 'scripted' }],
  [['--async', 'engineer', 'bd-a'], { async: true, task_id: 'bd-a' }],
  [['list', '--no-start', '--json'], { start: false, json: true, project: undefined }],
  [['close', 'bd-a', '--reason', '- done'], { reason: '- done' }],
  [['wait', 'bd-a', 'bd-b'], { task_ids: ['bd-a', 'bd-b'], timeout: undefined }],
])('%j is read', (words, args) => {
  expect(argsOf(words)).toMatchObject(args);
});

test('names, aliases and short flags are unique', () => {
  const names = commandTable.flatMap(({ name, aliases = [] }) => [name, ...aliases]);
  const shorts = new Map<string, string>([
    ['h', 'help'],
    ['v', 'version'],
  ]);

  expect(new Set(names).size).toBe(names.length);
  for (const { flags } of commandTable)
    for (const [name, { short }] of Object.entries(flags)) {
      if (short === undefined) continue;
      expect([short, shorts.get(short) ?? name]).toEqual([short, name]);
      shorts.set(short, name);
    }
});

test.each([60, 80])('help fits %i columns, and names every command and flag', (width) => {
  const pages = [
    renderHelp(commandTable, width),
    ...commandTable.map((command) => renderCommandHelp(command, width)),
  ];
  const isExample = (line: string): boolean => /^ {2}[$#] /.test(line) || line.includes('agent ');

  for (const line of pages
    .join('\n')
    .split('\n')
    .filter((each) => !isExample(each)))
    expect(line.length, line).toBeLessThanOrEqual(width);
  for (const { name, flags } of commandTable) {
    expect(pages[0]).toContain(`  ${name}`);
    for (const flag of Object.keys(flags)) expect(pages.join('\n')).toContain(`--${flag}`);
  }
});

test.each([[[]], [['help']], [['-h']], [['--help']], [['help', 'help']]])(
  '%j asks for the help of the program',
  (words) => {
    expect(readCommand(words)).toEqual({ kind: 'help', command: null });
  },
);

test.each([
  [['help', 'create'], 'create'],
  [['create', '-h'], 'create'],
  [['create', '--help', 'a', 'b'], 'create'],
  [['help', 'ls'], 'list'],
])('%j asks for the help of a command', (words, name) => {
  expect(readCommand(words)).toMatchObject({ kind: 'help', command: { name } });
});

test.each([[['version']], [['-v']], [['--version']], [['version', '--json']]])(
  '%j asks for the version',
  (words) => {
    expect(readCommand(words)).toEqual({ kind: 'version', json: words.includes('--json') });
  },
);

test('help and version need no project', async () => {
  const { runAgent }: typeof import('../../src/cli/run-agent.ts') = await import(bin('run-agent'));
  const [out, err]: [string[], string[]] = [[], []];
  const io = createIo({ write: (text) => out.push(text) }, { write: (text) => err.push(text) });

  for (const word of ['help', 'version'])
    expect(await runAgent({ words: [word], cwd: '/nowhere', env: {} }, io)).toBe(0);
  expect(err).toEqual([]);
  expect(out.join('')).toContain('Usage:');
});
