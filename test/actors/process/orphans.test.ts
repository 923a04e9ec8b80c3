import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { endOrphans } from '../../../src/actors/process/orphans.ts';
import { childEnvironment } from '../../../src/actors/process/run-command.ts';
import { notLinux, testUnless } from '../../support/needs.ts';

const variable = 'ATS_MARKED_TEST';

/** Restarts itself without end, so that it is nearly always during execve. */
const beginsAnew = async (mark: string) => {
  const child = spawn('sh', ['-c', 'exec sh -c "$0" "$0"', 'exec sh -c "$0" "$0"'], {
    env: { ...childEnvironment(process.env), [variable]: mark },
    stdio: 'ignore',
  });
  await once(child, 'spawn');
  return child;
};

testUnless(notLinux)('a process during execve is found and ended', { tags: ['slow'] }, async () => {
  const counts: number[] = [];
  for (let time = 0; time < 100; time += 1) {
    const mark = randomUUID();
    const child = await beginsAnew(mark);
    const ended = once(child, 'exit');
    counts.push(await endOrphans(variable, mark));
    if (counts.at(-1) === 0) child.kill('SIGKILL');
    await ended;
  }

  expect(counts).toEqual(counts.map(() => 1));
});

test('a process that ends within the patience is not ended by us', async () => {
  const begin = async (mark: string, seconds: string) => {
    const child = spawn('sleep', [seconds], {
      env: { ...childEnvironment(process.env), [variable]: mark },
      stdio: 'ignore',
    });
    await once(child, 'spawn');
    return { child, ended: once(child, 'exit') };
  };
  const [patient, hasty] = [await begin('patient', '0.3'), await begin('hasty', '60')];

  const counts = await Promise.all([
    endOrphans(variable, 'patient', 10_000),
    endOrphans(variable, 'hasty'),
  ]);
  await Promise.all([patient.ended, hasty.ended]);

  expect(counts).toEqual([0, 1]);
  expect([patient.child.signalCode, hasty.child.signalCode]).toEqual([null, 'SIGTERM']);
});

test('a process with another mark is left alone', async () => {
  const child = spawn('sleep', ['300'], {
    env: { ...childEnvironment(process.env), [variable]: 'other' },
    stdio: 'ignore',
  });
  await once(child, 'spawn');

  expect(await endOrphans(variable, 'othe')).toBe(0);
  expect(child.exitCode ?? child.signalCode).toBeNull();
  child.kill();
});
