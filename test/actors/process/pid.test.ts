import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { execa } from 'execa';
import { expect, onTestFinished, test, vi } from 'vitest';
import { isAlive } from '../../../src/actors/process/pid.ts';

test('a process that has ended and was not collected is not alive', async () => {
  const parent = execa('sh', ['-c', 'sleep 600 & echo $!; exec sleep 600'], { reject: false });
  onTestFinished(() => void parent.kill('SIGKILL'));
  const [line] = await once(parent.stdout, 'data');
  const [pid, child] = [parent.pid ?? 0, Number(line)];
  // A shell would collect it.
  await vi.waitFor(() => expect(readFileSync(`/proc/${pid}/cmdline`, 'utf8')).toMatch(/^sleep/));
  expect(isAlive(child)).toBe(true);

  process.kill(child, 'SIGKILL');
  await vi.waitFor(() => expect(isAlive(child)).toBe(false), { timeout: 10_000 });

  expect(process.kill(child, 0)).toBe(true);
  expect(isAlive(pid)).toBe(true);
});
