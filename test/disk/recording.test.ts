import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/temporary.ts';
import { readRecording } from './support/recording.ts';

const hex = (text: string): string =>
  [...Buffer.from(text)].map((byte) => `\\x${byte.toString(16)}`).join('');

test('a descriptor that another thread gets while it is being closed belongs to that thread', () => {
  const log = join(temporaryFolder(), 'log');
  const lines = [
    '100 clone3({flags=CLONE_VM|CLONE_THREAD} => {parent_tid=[101]}, 88) = 101',
    '101 close(20 <unfinished ...>',
    `100 openat(AT_FDCWD, "${hex('/p/folder')}", O_RDONLY) = 20`,
    '101 <... close resumed>)                 = 0',
    '100 fsync(20)                            = 0',
  ];
  writeFileSync(log, `${lines.join('\n')}\n`);

  const events = readRecording(log, '/p');

  expect(events.map(({ type }) => type)).toEqual(['close', 'open', 'sync.began', 'sync.ended']);
});
