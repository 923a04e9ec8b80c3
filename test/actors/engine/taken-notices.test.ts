import { expect, test } from 'vitest';
import { takenNotices } from '../../../src/actors/engine/slots/share-slots.ts';

test('a notice of taken tasks is shorter than PostgreSQL allows, and each task is in one', () => {
  const ids = Array.from({ length: 50 }, (_, n) => `${'project-'.repeat(30)}${n}`);

  const notices = takenNotices(ids.map((taskId, n) => ({ taskId, from: n % 2 === 0 ? 'a' : 'b' })));

  for (const notice of notices) expect(Buffer.byteLength(notice)).toBeLessThan(8_000);
  const told = notices.flatMap((notice) => (notice.split(' ')[2] ?? '').split(','));
  expect(told.toSorted()).toEqual(ids.toSorted());
  expect(new Set(notices.map((notice) => notice.split(' ')[1]))).toEqual(new Set(['a', 'b']));
});
