// Many callers at once that each commit a change and wait for it, beside one caller alone.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createJournal } from '../build/actors/journal/journal.js';
import { openTasks, report } from './lib.mjs';

const callers = 64;
const ms = Number(process.env.MS ?? 2_000);
const folder = mkdtempSync(join(tmpdir(), 'agent-bench-'));
const { store } = openTasks(folder);
const journal = createJournal(store, {
  node: 'bench',
  onError: console.error,
  onListenerError: console.error,
});
const note = (n) => ({
  taskId: `bd-${n}`,
  attempt: 0,
  type: 'log',
  at: 0,
  data: '{"text":"x"}',
  cause: null,
});

/** Commits in a second. */
const rateOf = async (count) => {
  const end = performance.now() + ms;
  let commits = 0;
  const call = async (n) => {
    while (performance.now() < end) {
      await journal.commit({ entries: [note(n)] });
      commits += 1;
      // As between two requests: the next one comes in a turn of its own.
      await new Promise(setImmediate);
    }
  };
  await Promise.all(Array.from({ length: count }, (_, n) => call(n)));
  return (commits * 1_000) / ms;
};

await rateOf(callers);
const [alone, together] = [await rateOf(1), await rateOf(callers)];
store.close();
rmSync(folder, { recursive: true });
report(`one caller's commits / those of ${callers} at once`, {
  ours: alone,
  limit: together,
  ratio: alone / together,
  goal: 0.2,
  unit: '/s',
});
