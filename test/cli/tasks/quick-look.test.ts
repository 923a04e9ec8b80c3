import { expect, test } from 'vitest';
import { readQuickLook } from '../../../src/cli/tasks/quick-look.ts';
import { readCommand } from '../../../src/cli/words/read-command.ts';

const lines = [
  'list',
  'ls',
  'ls --json',
  'list --limit 50',
  'list --limit 7 --json --all',
  'list --all --status active',
  'list --status nonsense --limit 100000',
  'ps',
  'ps --json',
  'show bd-a1b2',
  'status bd-a1.2 --json',
];

test.each(lines)('the grammar reads the same from: agent %s', (line) => {
  const words = line.split(' ');
  const { command, args } = readQuickLook(words) ?? {};

  const read = readCommand(words);

  expect(read).toMatchObject({ kind: 'run', command: { name: command } });
  const given = 'args' in read ? Object.entries(read.args) : [];
  expect(Object.fromEntries(given.filter(([, value]) => value !== undefined))).toEqual({
    ...{ help: false, version: false },
    ...args,
  });
});

test.each([
  ...['', 'lits', 'run', 'help list', 'list -h', 'list --help', 'list extra', 'list --version'],
  ...['list --limit', 'list --limit 0', 'list --limit 1.5', 'list --limit=5', 'list --limit -1'],
  ...['list --limit 1 --limit 2', 'list --json --json', 'list --status', 'list --status --json'],
  ...['list --sort cost', 'list --role engineer', 'list --project .', 'list --config x', 'list --'],
  ...['ps --all', 'ps bd-a1', 'show', 'show --json', 'show --json bd-a1', 'show bd-a1 bd-a2'],
  ...['show bd-a1 --all', 'show -bd', 'show bd-a1 --no-pager', '--json list'],
])('the grammar alone reads: agent %s', (line) => {
  expect(readQuickLook(line.split(' '))).toBeNull();
});
