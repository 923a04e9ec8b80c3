import { expect, test } from 'vitest';
import { keyPressesIn } from '../../../src/cli/board/board-command.ts';

test('keys that come together are told apart, and unknown sequences do nothing', () => {
  expect(keyPressesIn('jk\u001b[B\u001bOA\u001b[15~xq')).toEqual([
    'down',
    'up',
    'down',
    'up',
    'quit',
  ]);
  expect(keyPressesIn('\u001b')).toEqual(['back']);
  expect(keyPressesIn('\r\u0003')).toEqual(['show', 'interrupt']);
});
