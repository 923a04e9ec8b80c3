import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Change, NewEntry, Store } from '../../src/actors/store/port.ts';

const line = (taskId: string, type = 'log', data: unknown = { n: 1 }): NewEntry => ({
  taskId,
  attempt: 1,
  type,
  at: 1_000,
  data: JSON.stringify(data),
  cause: null,
});

const actor = (id: string, pending = true) => ({
  id,
  taskId: id.split('#')[0] ?? id,
  version: 1,
  pending,
  changedAt: 5,
  snapshot: `{"id":"${id}"}`,
});

/** What every store does; `reopen` gives the same data to a new store, as a new process would. */
export const describeStore = (name: string, open: () => { store: Store; reopen: () => Store; close: () => void }) =>
  describe(`${name} store`, () => {
    let opened: ReturnType<typeof open>;
    let store: Store;
    beforeEach(() => {
      opened = open();
      store = opened.store;
    });
    afterEach(() => opened.close());

    test('a commit answers with its entries in order, numbered without a gap', () => {
      const first = store.commit({ entries: [line('bd-a'), line('bd-b')] });
      const second = store.commit({ entries: [line('bd-a')] });

      expect([...first, ...second].map(({ seq }) => seq)).toEqual([1, 2, 3]);
      expect(store.lastSeq()).toBe(3);
    });

    test('a reader gets the entries of one task after a point, up to a limit', () => {
      store.commit({ entries: [line('bd-a'), line('bd-b'), line('bd-a'), line('bd-a')] });

      expect(store.read({ taskId: 'bd-a', after: 1, limit: 1 }).map(({ seq }) => seq)).toEqual([3]);
      expect(store.read({ after: 1, limit: 10 }).map(({ seq }) => seq)).toEqual([2, 3, 4]);
    });

    test('an entry comes back as it was written', () => {
      const entry: NewEntry = { ...line('bd-a', 'snapshot', { text: 'é "q" \u2028' }), cause: '{"type":"run"}' };
      store.commit({ entries: [entry] });

      expect(store.read({ after: 0, limit: 1 })).toEqual([{ ...entry, seq: 1 }]);
    });

    test('the newest entry of a type is found', () => {
      store.commit({ entries: [line('bd-a', 'snapshot', 1), line('bd-a', 'snapshot', 2), line('bd-a', 'log')] });

      expect(store.latest('bd-a', 'snapshot')?.seq).toBe(2);
      expect(store.latest('bd-a', 'completed')).toBeNull();
    });

    test('the newest entry of a type is found for every pending task, in the order of the journal', () => {
      for (const id of ['bd-a', 'bd-b', 'bd-none', 'bd-a#1']) store.commit({ actor: actor(id), entries: [] });
      store.commit({ actor: actor('bd-over', false), entries: [line('bd-over', 'snapshot')] });
      store.commit({ entries: [line('bd-a', 'snapshot'), line('bd-b', 'snapshot'), line('bd-a', 'snapshot')] });
      store.commit({ entries: [line('bd-b'), line('bd-none')] });

      expect(store.latestOfPending('snapshot')).toEqual([3, 4]);
    });

    test('an actor is kept in its last state only', () => {
      store.commit({ actor: actor('bd-a'), entries: [] });
      store.commit({ actor: { ...actor('bd-a'), pending: false, snapshot: '{}' }, entries: [] });

      expect(store.actor('bd-a')).toEqual({ ...actor('bd-a'), pending: false, snapshot: '{}' });
      expect(store.actor('bd-b')).toBeNull();
    });

    test('pending tasks are listed without their agents and without the settled', () => {
      store.commit({ actor: actor('bd-a'), entries: [] });
      store.commit({ actor: actor('bd-a#1'), entries: [] });
      store.commit({ actor: actor('bd-b', false), entries: [] });

      expect(store.tasks('pending').map(({ id }) => id)).toEqual(['bd-a']);
      expect(store.tasks('all').map(({ id }) => id)).toEqual(['bd-a', 'bd-b']);
    });

    test('a change that cannot be written leaves nothing behind', () => {
      const broken = { ...line('bd-a'), data: null as unknown as string };
      const change: Change = { actor: actor('bd-a'), entries: [line('bd-a'), broken] };

      expect(() => store.commit(change)).toThrow();
      expect(store.lastSeq()).toBe(0);
      expect(store.actor('bd-a')).toBeNull();
    });

    test('steps are kept in the order in which they began, with what came of them, until they are forgotten', () => {
      const step = (key: string, result: string | null = null, attempt = 1) => ({
        taskId: 'bd-a',
        attempt,
        key,
        intent: `{"is":"${key}"}`,
        result,
      });
      for (const each of [step('think:1'), step('act:1:a'), step('act:1:b'), step('think:1', '"x"', 2)])
        store.commit({ entries: [], step: each });
      store.commit({ entries: [line('bd-a')], step: step('think:1', '{"ok":true}') });

      expect(store.steps('bd-a', 1)).toEqual([step('think:1', '{"ok":true}'), step('act:1:a'), step('act:1:b')]);

      store.commit({ entries: [], forgetSteps: { taskId: 'bd-a', attempt: 1 } });
      expect(store.steps('bd-a', 1)).toEqual([]);
      expect(opened.reopen().steps('bd-a', 2)).toEqual([step('think:1', '"x"', 2)]);
    });

    test('a request is remembered with the change that it caused, its answer later', () => {
      store.commit({ entries: [line('bd-a')], request: { id: 'r1', taskId: 'bd-a' } });
      expect(store.request('r1')).toEqual({ taskId: 'bd-a', answer: null });

      store.rememberAnswer('r1', '{"ok":true}');

      expect(store.request('r1')).toEqual({ taskId: 'bd-a', answer: '{"ok":true}' });
      expect(store.request('r2')).toBeNull();
    });

    test('the next process reads what was committed', () => {
      store.commit({ actor: actor('bd-a'), entries: [line('bd-a')], request: { id: 'r', taskId: 'bd-a' } });

      const next = opened.reopen();

      expect(next.read({ after: 0, limit: 10 })).toHaveLength(1);
      expect(next.actor('bd-a')).toEqual(actor('bd-a'));
      expect(next.commit({ entries: [line('bd-a')] })[0]?.seq).toBe(2);
    });

    test('it reports that it works', () => {
      expect(store.check().ok).toBe(true);
    });
  });
