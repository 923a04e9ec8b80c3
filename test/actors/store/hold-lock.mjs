// Takes the lock again and again, and says so when somebody else took it meanwhile.
import { readFileSync, writeFileSync } from 'node:fs';

const [modules, lock, holder, acked, tracked] = process.argv.slice(2);
const { withLock } = await import(`${modules}/store/process-lock.js`);
const { openDatabase } = await import(`${modules}/store/database.js`);
const { openLedger } = await import(`${modules}/ledger/ledger.js`);
const { createEmbeddedTracker } = await import(`${modules}/tracker/embedded/embedded.js`);
const db = openDatabase({ file: `${tracked}/journal.db` });
const { ledger } = openLedger({
  db,
  projectRoot: tracked,
  clock: Date.now,
  log: () => {},
  redact: (text) => text,
});
const random = (max) => Math.floor(Math.random() * max);
const tracker = createEmbeddedTracker({ clock: Date.now, random }, ledger);

const inside = async () => {
  writeFileSync(holder, String(process.pid));
  await new Promise((resolve) => setTimeout(resolve, 2));
  if (readFileSync(holder, 'utf8') !== String(process.pid))
    writeFileSync(acked, 'two holders\n', { flag: 'a' });
};

for (;;) {
  await withLock(lock, inside);
  const { id } = await tracker.create({
    title: 'x',
    description: '',
    priority: 2,
    labels: [],
    dependencies: [],
  });
  writeFileSync(acked, `${id}\n`, { flag: 'a' });
}
