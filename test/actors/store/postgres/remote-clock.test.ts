import { expect, test } from 'vitest';
import { createRemoteClock } from '../../../../src/actors/store/postgres/database.ts';

test('the clock of another machine goes on from its last answer', () => {
  let steady = 500;
  const clock = createRemoteClock(() => steady);
  clock.heard(10_000);
  steady += 250;
  const after = clock.now();
  // It was set back.
  clock.heard(4_000);
  steady += 10;

  expect([after, clock.now()]).toEqual([10_250, 4_010]);
});
