import { expect, test } from 'vitest';
import { showControls, stripControls } from '../../../src/cli/output/safe-text.ts';

test('a patch shows every character that a terminal would hide', () => {
  const line = '+echo building\u001b];./evil.sh&\u0007 2>/dev/null\r\n+\u202eb';

  expect(showControls(line)).toBe(
    '+echo building<U+001B>];./evil.sh&<U+0007> 2>/dev/null\n+<U+202E>b',
  );
  expect(stripControls(showControls(line))).toBe(showControls(line));
});
