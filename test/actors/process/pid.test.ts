import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { execa } from 'execa';
import { expect, onTestFinished, test, vi } from 'vitest';
import { isAlive } from '../../../src/actors/process/pid.ts';
import { noPython, testUnless } from '../../support/needs.ts';

test('a zombie is not alive', async () => {
  const parent = execa('sh', ['-c', 'sleep 600 & echo $!; exec sleep 600'], { reject: false });
  onTestFinished(() => void parent.kill('SIGKILL'));
  const [line] = await once(parent.stdout, 'data');
  const [pid, child] = [parent.pid ?? 0, Number(line)];
  // A shell would reap it.
  await vi.waitFor(() => expect(readFileSync(`/proc/${pid}/cmdline`, 'utf8')).toMatch(/^sleep/));
  expect(isAlive(child)).toBe(true);

  process.kill(child, 'SIGKILL');
  await vi.waitFor(() => expect(isAlive(child)).toBe(false));

  expect(process.kill(child, 0)).toBe(true);
  expect(isAlive(pid)).toBe(true);
});

testUnless(noPython)('a process whose first thread alone has ended is alive', async () => {
  const lines = [
    'import ctypes, threading, time',
    'threading.Thread(target=time.sleep, args=(600,)).start()',
    'ctypes.CDLL(None).pthread_exit(None)',
  ];
  const program = execa('python3', ['-c', lines.join('\n')], { reject: false });
  onTestFinished(() => void program.kill('SIGKILL'));
  const pid = program.pid ?? 0;

  await vi.waitFor(() => expect(readFileSync(`/proc/${pid}/stat`, 'utf8')).toMatch(/\) Z /));

  expect(isAlive(pid)).toBe(true);
});
