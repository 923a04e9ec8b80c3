import { expect, test } from 'vitest';
import { renderTable } from '../../../src/cli/output/render/table.ts';
import { terminalText } from '../../../src/cli/output/styled.ts';

test('a row is one line, and holds no code of a terminal, whatever a cell holds', () => {
  const cells = ['a\nb', '\u001b[31mred', 'x\r\n\ty'].map((text) => ({ text }));

  const [, row, ...more] = terminalText(renderTable(['A', 'B', 'C'], [cells], null), false).split(
    '\n',
  );

  expect(row).not.toContain('\u001b');
  expect(row?.split(/ {2,}/)).toEqual(['a b', expect.stringContaining('red'), 'x y']);
  expect(more).toEqual([]);
});
