import { loadConfig } from '../../src/cli/config/config.ts';
import { findProject, taskFiles } from '../../src/cli/config/places/project.ts';
import { openSqliteFile, runServer } from '../../src/cli/server/run-server.ts';
import { createFarStore, type Fate } from '../simulation/far-store.ts';
import { randomFrom } from '../simulation/random.ts';

/** `agent-server --server` on a store that is far away. Arguments: a seed, the longest delay (ms). */
const [seed = 1, delayMs = 50] = process.argv.slice(2).map(Number);
const random = randomFrom(seed);
const project = findProject(undefined, process.cwd(), process.env);

const fate = (): Fate => {
  if (random.chance(0.98)) return 'answered';
  // Each of these takes seconds.
  if (random.chance(delayMs / 1_000)) return random.pick(['lost', 'late'] as const);
  return random.pick(['failed before', 'failed after', 'stale'] as const);
};

const { stop } = await runServer({
  project,
  load: () => loadConfig({ project }, process.env),
  env: process.env,
  inspect: false,
  drainMs: 0,
  onLeaseLost: () => process.exit(1),
  open: (parts) => {
    const { store: near, ...opened } = openSqliteFile(taskFiles(project).journal, parts);
    const store = createFarStore(near, {
      fate,
      delay: () => random.below(delayMs),
      after: (ms, run) => void setTimeout(run, ms),
      lateMs: 5_000,
    });
    return { ...opened, store };
  },
});

process.once('SIGTERM', () => {
  stop().then(
    () => process.exit(0),
    () => process.exit(1),
  );
});
