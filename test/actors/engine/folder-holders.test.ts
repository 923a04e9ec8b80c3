import { expect, test } from 'vitest';
import { hasLastChange } from '../../../src/actors/engine/servers/held-folders.ts';

const calls = ['prompt', 'think:1', 'act:1:a', 'think:2', 'act:2:b'];
const runs = ['prompt', 'run:0', 'run:1'];

test.each([
  { keys: calls, lastChange: 'act:2:b', step: 'act:2:b', has: true },
  { keys: calls, lastChange: 'act:2:b', step: 'act:1:a', has: false },
  { keys: calls, lastChange: 'act:1:a', step: 'act:2:b', has: true },
  { keys: calls, lastChange: null, step: 'act:1:a', has: true },
  { keys: runs, lastChange: 'run:0', step: 'run:0:part', has: false },
  { keys: runs, lastChange: 'run:0', step: 'run:1:part', has: true },
  { keys: runs, lastChange: 'run:0', step: 'run:0', has: true },
])('a folder as $step left it, after $lastChange: $has', ({ keys, lastChange, step, has }) => {
  expect(hasLastChange(keys, lastChange, step)).toBe(has);
});
