import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { execa } from 'execa';
import { expect, test } from 'vitest';

/** Tells how often it looked at an event, and looks again in a later turn, after which all is quiet. */
const script = (module: URL): string => `
  const { onceATurn } = await import(${JSON.stringify(module.href)});
  let looks = 0;
  const look = onceATurn(() => { looks += 1; });
  process.stdin.on('data', () => {
    const before = looks;
    look();
    look();
    process.stdout.write(String(looks - before));
    setTimeout(() => setImmediate(look), 5);
  });
`;

test('what is looked at once a turn is looked at in the turn of the first event after a pause', async () => {
  const module = new URL('../../build/cli/config/once-a-turn.js', import.meta.url);
  const child = execa(process.execPath, ['--input-type=module', '--eval', script(module)]);
  for (let event = 0; event < 3; event += 1) {
    child.stdin.write('x');
    await once(child.stdout, 'data');
    await delay(50);
  }
  child.stdin.end();

  expect((await child).stdout).toBe('111');
});
