import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSqliteStore, type SqliteStore } from '../../../src/actors/store/sqlite.ts';
import { describeStore } from '../../contracts/store.ts';
import { createFarStore } from '../../simulation/far-store.ts';

describeStore('far', () => {
  const folder = mkdtempSync(join(tmpdir(), 'agent-store-'));
  const stores: SqliteStore[] = [];
  const openStore = () => {
    const near = createSqliteStore({ file: join(folder, 'journal.db') });
    stores.push(near);
    const after = (_: number, run: () => void): void => queueMicrotask(run);
    return createFarStore(near, { fate: () => 'answered', delay: () => 0, after, lateMs: 0 });
  };
  return {
    store: openStore(),
    reopen: () => {
      stores.pop()?.close();
      return openStore();
    },
    close: () => {
      for (const store of stores) store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
});
