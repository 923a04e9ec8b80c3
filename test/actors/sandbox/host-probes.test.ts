import { expect, test } from 'vitest';
import { createBubblewrap } from '../../../src/actors/sandbox/bubblewrap.ts';
import { runHostProbes } from '../../../src/actors/sandbox/host-probes.ts';
import type { Sandbox } from '../../../src/actors/sandbox/port.ts';
import { describeUnless, noSandbox } from '../../support/needs.ts';

const sandbox = createBubblewrap({ readPaths: [], network: false });

describeUnless(noSandbox)('on the host after a command', () => {
  test('neither git nor the next attempt runs what the command left', {
    tags: ['slow'],
  }, async () => {
    const probes = await runHostProbes(sandbox);

    expect(probes.filter(({ held }) => !held)).toEqual([]);
    expect(probes).toHaveLength(4);
  });

  test('the probes detect a created mark and a followed link', { tags: ['slow'] }, async () => {
    const toothless: Sandbox = {
      ...sandbox,
      confine: async ({ argv, root, env }) => ({
        ...{
          argv: ['/bin/sh', '-c', 'echo ran > "$MARK"; exec "$@"', 'sh', ...argv],
          cwd: root,
          env,
          forbidden: [],
        },
      }),
    };

    const probes = await runHostProbes(toothless);

    expect(probes.map(({ held, tried }) => [held, tried])).toEqual([
      [false, true],
      [false, true],
      [true, true],
      [true, true],
    ]);
  });

  test('a probe whose command could not run proves nothing', async () => {
    const broken: Sandbox = {
      ...sandbox,
      confine: (wanted) => sandbox.confine({ ...wanted, argv: ['/bin/false'] }),
    };

    const probes = await runHostProbes(broken);

    expect(probes.filter(({ held, tried }) => held || tried)).toEqual([]);
  });
});
