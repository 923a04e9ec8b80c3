import { expect, test } from 'vitest';
import { titleFrom } from '../../../src/actors/engine/queries/task-queries.ts';

test.each([
  ['\n  Mend the sum  \n\nIt is wrong.', 'Mend the sum'],
  ['```json\n{\n  "goal": "Mend it"\n}\n```', '"goal": "Mend it"'],
  ['~~~\n\nMend it\n~~~', 'Mend it'],
  ['修复求和', '修复求和'],
  ['???', '???'],
  ['', ''],
])('the title of %j is its first line of text', (description, title) => {
  expect(titleFrom(description)).toBe(title);
});
