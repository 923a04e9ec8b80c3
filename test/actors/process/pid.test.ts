import { once } from 'node:events';
import { execa } from 'execa';
import { expect, onTestFinished, test, vi } from 'vitest';
import { isAlive } from '../../../src/actors/process/pid.ts';

test('a process that has ended and was not collected is not alive', async () => {
  const parent = execa('sh', ['-c', 'true & echo $!; exec sleep 600'], { reject: false });
  onTestFinished(() => void parent.kill('SIGKILL'));
  const [line] = await once(parent.stdout, 'data');
  const child = Number(line);

  await vi.waitFor(() => expect(isAlive(child)).toBe(false), { timeout: 10_000 });

  expect(process.kill(child, 0)).toBe(true);
  expect(isAlive(parent.pid ?? 0)).toBe(true);
  expect(isAlive(process.pid)).toBe(true);
});
