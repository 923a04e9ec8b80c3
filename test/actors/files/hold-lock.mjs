// Takes the lock again and again, and says so when somebody else took it meanwhile.
import { readFileSync, writeFileSync } from 'node:fs';

const [modules, lock, holder, acked, tracked] = process.argv.slice(2);
const { withLock } = await import(`${modules}/files/process-lock.js`);
const { createEmbeddedTracker } = await import(`${modules}/tracker/embedded.js`);
const tracker = createEmbeddedTracker({
  projectRoot: tracked,
  clock: () => Date.now(),
  random: (max) => Math.floor(Math.random() * max),
});

const inside = async () => {
  writeFileSync(holder, String(process.pid));
  await new Promise((resolve) => setTimeout(resolve, 2));
  if (readFileSync(holder, 'utf8') !== String(process.pid)) writeFileSync(acked, 'two holders\n', { flag: 'a' });
};

for (let n = 0; ; n += 1) {
  await withLock(lock, inside);
  const { id } = await tracker.create({ title: 'x', description: '', priority: 2, labels: [], dependencies: [] });
  writeFileSync(acked, `${id}\n`, { flag: 'a' });
}
