import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { createBdTracker } from '../../../src/actors/tracker/bd/bd.ts';
import { createBdCalls, defaultBdLimits } from '../../../src/actors/tracker/bd/calls.ts';
import { describeTracker } from '../../contracts/tracker.ts';
import { families, makeBd, makeBdProject } from '../../support/bd.ts';
import { ledgerAt } from '../../support/ledger.ts';
import { isLong } from '../../support/long.ts';

const open = (projectRoot: string, bdPath: string) => {
  const ledger = ledgerAt(projectRoot);
  return createBdTracker({
    calls: createBdCalls({ projectRoot, bdPath, processEnv: process.env, limits: defaultBdLimits }),
    projectRoot,
    actor: 'agent-server',
    requests: () => ledger.db,
    log: () => {},
  });
};

const real = process.env['AGENT_TEST_BD'];

if (real !== undefined)
  describeTracker(
    `the real bd at ${real}`,
    async () => {
      const root = await mkdtemp(join(tmpdir(), 'agent-bd-'));
      await execa(real, ['init', '--prefix=bd', '--quiet', '--skip-hooks'], { cwd: root });
      return { tracker: open(root, real), close: () => rm(root, { recursive: true }) };
    },
    { many: 20 },
  );
// The others differ from these in their words only; `npm run test:long` runs them all, with every
// odd text.
else
  for (const family of isLong ? families : (['A-direct', 'C', 'D'] as const))
    describeTracker(
      `bd ${family}`,
      async () => {
        const bd = makeBd(family);
        return { tracker: open(await makeBdProject(bd), bd.path), close: async () => {} };
      },
      {
        ...(isLong ? { many: 20 } : { many: 5, brief: family !== 'A-direct' }),
        tags: family === 'C' ? [] : ['slow'],
      },
    );
