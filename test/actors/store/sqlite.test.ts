import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { takeLock } from '../../../src/actors/files/process-lock.ts';
import type { Store } from '../../../src/actors/store/port.ts';
import { createSqliteStore } from '../../../src/actors/store/sqlite.ts';
import { describeStore } from '../../contracts/store.ts';
import { temporaryFolder } from '../../support/temporary.ts';

describeStore('sqlite', () => {
  const folder = mkdtempSync(join(tmpdir(), 'agent-store-'));
  const file = join(folder, 'journal.db');
  const stores: Store[] = [];
  const openStore = (): Store => {
    const store = createSqliteStore({ file });
    stores.push(store);
    return store;
  };
  return {
    store: openStore(),
    reopen: () => {
      stores.pop()?.close();
      return openStore();
    },
    close: () => {
      for (const store of stores) store.close();
      rmSync(folder, { recursive: true });
    },
  };
});

const note = (data: string) => ({ taskId: 'bd-a', attempt: 1, type: 'log', at: 1, data, cause: null });

test('secrets are taken out of everything that is written', () => {
  const redact = (text: string) => text.replaceAll('sk-secret', '[secret]');
  const store = createSqliteStore({ file: ':memory:', redact });

  const [entry] = store.commit({
    entries: [{ ...note('{"text":"key sk-secret"}'), cause: '"sk-secret"' }],
    actor: { id: 'bd-a', taskId: 'bd-a', version: 1, pending: true, changedAt: 1, snapshot: '"sk-secret"' },
  });

  expect(entry?.data).toBe('{"text":"key [secret]"}');
  expect(JSON.stringify([store.read({ after: 0, limit: 9 }), store.actor('bd-a')])).not.toContain('sk-secret');
});

test('the journal is readable by its owner only', () => {
  const file = join(temporaryFolder(), 'journal.db');
  createSqliteStore({ file }).close();

  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test('a reader beside the writer sees what was committed and cannot write', () => {
  const file = join(temporaryFolder(), 'journal.db');
  const writer = createSqliteStore({ file });
  writer.commit({ entries: [note('{}')] });

  const reader = createSqliteStore({ file, readonly: true });

  expect(reader.lastSeq()).toBe(1);
  expect(() => reader.commit({ entries: [note('{}')] })).toThrow();
  reader.close();
  writer.close();
});

test('a project is locked by one holder at a time, and free again after it', () => {
  const path = join(temporaryFolder(), 'server.lock');
  const first = takeLock(path);

  expect(takeLock(path)).toBeNull();
  first?.release();
  const second = takeLock(path);

  expect(second).not.toBeNull();
  second?.release();
});
