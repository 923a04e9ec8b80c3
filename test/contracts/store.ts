import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { ImageFacts } from '../../src/actors/files/image.ts';
import {
  type Change,
  DatabaseGoneError,
  type Entry,
  LeaseLostError,
  type NewEntry,
  type Store,
  type Subscription,
} from '../../src/actors/store/port.ts';
import { createSqliteStore, type SqliteStore } from '../../src/actors/store/sqlite.ts';
import { describeUnless } from '../support/needs.ts';
import { randomFrom } from '../support/random.ts';

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

/** A store and what its tests need of its surroundings. */
export interface StoreScene {
  readonly store: Store;
  /** Another program on the same data. */
  beside(): Promise<Store>;
  /** Gives the same data to a new store, as a new process would. */
  reopen(): Promise<Store>;
  /** Sets the clock that all programs share (epoch ms). */
  setNow(ms: number): Promise<void>;
  close(): void;
}

/** Over the rows of SQLite. */
export const sqliteScene = async (over: (near: SqliteStore) => Store): Promise<StoreScene> => {
  const folder = mkdtempSync(join(tmpdir(), 'agent-store-'));
  const stores: SqliteStore[] = [];
  const open = (): SqliteStore => {
    const near = createSqliteStore({ file: join(folder, 'journal.db'), redact: (text) => text });
    stores.push(near);
    return near;
  };
  return {
    store: over(open()),
    beside: async () => open(),
    reopen: async () => {
      stores.pop()?.close();
      return over(open());
    },
    setNow: async (ms) => {
      vi.spyOn(Date, 'now').mockReturnValue(ms);
    },
    close: () => {
      vi.restoreAllMocks();
      for (const store of stores) store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

/** The contract of a store. */
export const describeStore = (
  name: string,
  open: () => Promise<StoreScene>,
  {
    skip = null,
    isSlow = false,
  }: { readonly skip?: string | null; readonly isSlow?: boolean } = {},
) =>
  describeUnless(skip)(`${name} store`, { tags: isSlow ? ['slow'] : [] }, () => {
    let opened: StoreScene;
    let store: Store;
    beforeEach(async () => {
      opened = await open();
      store = opened.store;
    });
    afterEach(() => opened.close());

    test('a commit answers with its entries in order, numbered without a gap', async () => {
      const first = await store.commit({ entries: [line('bd-a'), line('bd-b')] });
      const second = await store.commit({ entries: [line('bd-a')] });

      expect([...first.entries, ...second.entries].map(({ seq }) => seq)).toEqual([1, 2, 3]);
      expect(await store.lastSeq()).toBe(3);
    });

    test('the entries of each task are numbered without a gap, whoever commits them', async () => {
      const save = { actor: actor('bd-a'), guard: { revision: 0, attempt: 0 } };
      await store.commit({ entries: [line('bd-a'), line('bd-b'), line('bd-a')] });
      await store.commit({ ...save, entries: [line('bd-a')] }, { entries: [line('bd-b')] });
      await store.commit({ ...save, entries: [line('bd-a')] }, { entries: [line('bd-b')] });

      const next = await opened.reopen();
      const { entries } = await next.commit({ entries: [line('bd-a'), line('bd-c')] });

      const numbers = async (taskId: string) =>
        (await next.read({ taskId, after: 0, limit: 10 })).map(({ taskSeq }) => taskSeq);
      expect([await numbers('bd-a'), await numbers('bd-b')]).toEqual([
        [1, 2, 3, 4],
        [1, 2, 3],
      ]);
      expect(entries.map(({ taskSeq }) => taskSeq)).toEqual([4, 1]);
      expect((await next.kept({ taskId: 'bd-a', after: 1, limit: 1 }))[0]?.taskSeq).toBe(2);
    });

    test('workflows that are over come in pages, the last to end first, apart from the others', async () => {
      const save = (id: string, pending: boolean, changedAt: number) =>
        store.commit({ actor: { ...actor(id, pending), changedAt }, entries: [] });
      await save('bd-a', true, 9);
      await save('bd-b', false, 9);
      for (const [name, at] of [
        ['b', 1],
        ['d', 3],
        ['a', 2],
        ['c', 3],
      ] as const)
        await save(`workflow:wf-${name}`, false, at);
      await save('workflow:wf-e', true, 4);

      const first = await store.endedWorkflows(2);
      const rest = await store.endedWorkflows(9, first.at(-1));

      const names = (saved: readonly { readonly taskId: string }[]) =>
        saved.map(({ taskId }) => taskId.slice(-1));
      expect([names(first), names(rest)]).toEqual([
        ['d', 'c'],
        ['a', 'b'],
      ]);
      expect(names(await store.openHosted('workflow'))).toEqual(['e']);
    });

    test('a reader gets the entries of one task after a point, up to a limit', async () => {
      await store.commit({ entries: [line('bd-a'), line('bd-b'), line('bd-a'), line('bd-a')] });

      expect(
        (await store.read({ taskId: 'bd-a', after: 1, limit: 1 })).map(({ seq }) => seq),
      ).toEqual([3]);
      expect((await store.read({ after: 1, limit: 10 })).map(({ seq }) => seq)).toEqual([2, 3, 4]);
    });

    test('an entry comes back as it was written', async () => {
      const entry: NewEntry = {
        ...line('bd-a', 'snapshot', { text: 'é "q" \u2028' }),
        cause: '{"type":"run"}',
      };
      await store.commit({ entries: [entry] });

      expect(await store.read({ after: 0, limit: 1 })).toEqual([{ ...entry, seq: 1, taskSeq: 1 }]);
    });

    test('every snapshot comes back whole, however little of the task changed', async () => {
      const about = (task: object, value = 'thinking') =>
        line('bd-a', 'snapshot', { machine: 'agent', value, tags: ['live'], task });
      const long = {
        task_id: 'bd-a',
        title: 't',
        description: 'é "q" \u2028 '.repeat(200),
        labels: ['x', 'y'],
      };
      const snapshots = [
        about({ ...long, status: 'queued', usage: { turns: 0 } }),
        about({ ...long, status: 'started', started_at: 'now', usage: { turns: 1 } }),
        about({ ...long, status: 'started', usage: { turns: 1 }, labels: {} }),
        about({ ...long, description: 'another one '.repeat(300), status: 'started', usage: {} }),
        about({
          ...long,
          description: 'another one '.repeat(300),
          status: 'complete',
          usage: {},
        }),
        about({}),
        about({ description: null }),
        line('bd-a', 'snapshot', ['no task']),
      ];
      await store.commit({ entries: snapshots.slice(0, 2) });
      for (const each of snapshots.slice(2)) await store.commit({ entries: [each] });

      expect((await store.read({ after: 0, limit: 10 })).map(({ data }) => data)).toEqual(
        snapshots.map(({ data }) => data),
      );
      expect((await store.read({ after: 4, limit: 1 }))[0]?.data).toBe(snapshots[4]?.data);
      expect((await store.latest('bd-a', 'snapshot'))?.data).toBe(snapshots.at(-1)?.data);
      expect(
        (await (await opened.reopen()).read({ taskId: 'bd-a', after: 1, limit: 1 }))[0]?.data,
      ).toBe(snapshots[1]?.data);
    });

    test('the newest entry of a type is found', async () => {
      await store.commit({
        entries: [line('bd-a', 'snapshot', 1), line('bd-a', 'snapshot', 2), line('bd-a', 'log')],
      });

      expect((await store.latest('bd-a', 'snapshot'))?.seq).toBe(2);
      expect(await store.latest('bd-a', 'completed')).toBeNull();
    });

    test('decisions are found, the last one first, and no text that looks like one', async () => {
      const decision = (said: string) => line('bd-a', 'log', { decision: { said } });
      const text = line('bd-a', 'log', { message: '{"decision":{}}' });
      await store.commit({
        entries: [decision('first'), text, line('bd-a', 'snapshot', { decision: {} })],
      });
      await store.commit({ entries: [decision('second'), decision('third')] });

      expect((await store.decisions(2)).map(({ seq }) => seq)).toEqual([5, 4]);
      expect((await store.decisions(9)).map(({ seq }) => seq)).toEqual([5, 4, 1]);
    });

    test('the newest entry of a type is found for every pending task, in the order of the journal', async () => {
      for (const id of ['bd-a', 'bd-b', 'bd-none', 'bd-a#1'])
        await store.commit({ actor: actor(id), entries: [] });
      await store.commit({
        actor: actor('bd-over', false),
        entries: [line('bd-over', 'snapshot')],
      });
      await store.commit({
        entries: [line('bd-a', 'snapshot'), line('bd-b', 'snapshot'), line('bd-a', 'snapshot')],
      });
      await store.commit({ entries: [line('bd-b'), line('bd-none')] });

      expect(await store.latestOfPending('snapshot')).toEqual([3, 4]);
    });

    test('an actor is kept in its last state only', async () => {
      await store.commit({ actor: actor('bd-a'), entries: [] });
      await store.commit({
        actor: { ...actor('bd-a'), pending: false, snapshot: '{}' },
        entries: [],
      });

      expect(await store.actor('bd-a')).toEqual({
        ...actor('bd-a'),
        pending: false,
        snapshot: '{}',
        revision: 2,
        owner: null,
        restores: 0,
      });
      expect(await store.actor('bd-b')).toBeNull();
    });

    test('a commit is stale when its actor was saved meanwhile, and nothing of it is saved; others beside it are', async () => {
      const first = {
        actor: actor('bd-a'),
        guard: { revision: 0, attempt: 0 },
        entries: [line('bd-a')],
      };
      const request = { id: 'r1', taskId: 'bd-a' };
      const late = { ...first, actor: { ...actor('bd-a'), snapshot: '"late"' }, request };
      const other = {
        actor: actor('bd-b'),
        guard: { revision: 0, attempt: 0 },
        entries: [line('bd-b')],
      };
      expect((await store.commit(first)).stale).toEqual([]);

      const { entries, stale } = await store.commit(late, other);

      expect([entries.map(({ taskId }) => taskId), stale]).toEqual([['bd-b'], [late]]);
      expect(await store.actor('bd-a')).toEqual({
        ...actor('bd-a'),
        revision: 1,
        owner: null,
        restores: 0,
      });
      expect(await store.request('r1')).toBeNull();
      const next = { ...late, guard: { revision: 1, attempt: 0 } };
      expect((await store.commit(next)).stale).toEqual([]);
      expect(await store.actor('bd-a')).toMatchObject({ revision: 2, snapshot: '"late"' });
      const unknown = { actor: actor('bd-c'), guard: { revision: 1, attempt: 0 }, entries: [] };
      expect((await store.commit(unknown)).stale).toEqual([unknown]);
    });

    test('entries that were made from a saved actor are stale when another one is saved', async () => {
      const madeFrom = (revision: number) => ({
        entries: [line('bd-a')],
        unchanged: { id: 'bd-a', revision },
      });
      const before = await store.commit(madeFrom(0));
      await store.commit({ actor: actor('bd-a'), entries: [] });
      const late = madeFrom(0);

      expect([before.stale, before.entries.length]).toEqual([[], 1]);
      expect(await store.commit(late)).toEqual({ entries: [], stale: [late] });
      expect((await store.commit(madeFrom(1))).stale).toEqual([]);
      expect(await store.actor('bd-a')).toMatchObject({ revision: 1 });
    });

    test('a change that continues a stale one is stale, also when the revision fits', async () => {
      const save = (revision: number, snapshot: string) => ({
        actor: { ...actor('bd-a'), snapshot },
        guard: { revision, attempt: 0 },
        entries: [],
      });
      await store.commit(save(0, '"ours"'));
      await store.commit(save(1, '"theirs"'));
      const [next, last] = [save(1, '"second"'), save(2, '"third"')];

      const { stale } = await store.commit(next, last);

      expect([stale, (await store.actor('bd-a'))?.snapshot]).toEqual([[next, last], '"theirs"']);
    });

    test('a commit of an agent of an earlier attempt is stale', async () => {
      const task = (attempt: number) => ({
        actor: actor('bd-a'),
        guard: { revision: attempt - 1, attempt },
        entries: [],
      });
      const agent = (attempt: number, revision: number) => ({
        actor: actor(`bd-a#${attempt}`),
        guard: { revision, attempt },
        entries: [line('bd-a')],
      });
      await store.commit(task(1), agent(1, 0));
      await store.commit(task(2), agent(2, 0));

      const { entries, stale } = await store.commit(agent(1, 1), agent(2, 1));

      expect([entries.length, stale]).toEqual([1, [agent(1, 1)]]);
    });

    test('a commit that comes again by its id is carried out once, and answered as before', async () => {
      const id = { entries: [], commit: { node: 'a', number: 1 } };
      const save = {
        actor: actor('bd-a'),
        guard: { revision: 0, attempt: 0 },
        entries: [line('bd-a')],
      };
      const lost = { ...save, actor: { ...actor('bd-a'), snapshot: '"lost"' } };
      const progress = { entries: [line('bd-a'), line('bd-b')] };
      const first = await store.commit(id, save, lost, progress);

      const again = await store.commit(id, save, lost, progress);
      const after = await (await opened.reopen()).commit(id, save, lost, progress);

      expect([first.stale, again.stale, after.stale]).toEqual([[lost], [lost], [lost]]);
      store = await opened.reopen();
      expect(await store.lastSeq()).toBe(3);
      expect(await store.actor('bd-a')).toEqual({
        ...actor('bd-a'),
        revision: 1,
        owner: 'a',
        restores: 0,
      });
    });

    test('a commit that comes after a later one of its server is stale; those of others are not', async () => {
      const id = (node: string, number: number) => ({ entries: [], commit: { node, number } });
      const progress = { entries: [line('bd-a')] };
      await store.commit(id('a', 2), progress);

      const late = await store.commit(id('a', 1), progress);
      const other = await store.commit(id('b', 1), progress);

      expect([late.stale.includes(progress), other.stale]).toEqual([true, []]);
      expect(await store.lastSeq()).toBe(2);
    });

    test('a commit that failed by its id is carried out when it comes again', async () => {
      const id = { entries: [], commit: { node: 'a', number: 1 } };
      const broken = { ...line('bd-a'), data: null as unknown as string };
      await expect((async () => store.commit(id, { entries: [broken] }))()).rejects.toThrow();

      await store.commit(id, { entries: [line('bd-a')] });

      expect(await store.lastSeq()).toBe(1);
    });

    /** As the servers `a`, `b` and so on commit, one commit after another. */
    const commitAs = (() => {
      let number = 0;
      return (node: string, ...changes: readonly Change[]) => {
        number += 1;
        return (async () => store.commit({ entries: [], commit: { node, number } }, ...changes))();
      };
    })();
    const save = (id: string, revision: number, attempt: number) => ({
      actor: actor(id),
      guard: { revision, attempt },
      entries: [line('bd-a')],
    });
    const oneVersion = { oldest: 1, newest: 1 };
    const able = (roles: readonly string[], charts = oneVersion) => ({ roles, charts });
    const ownerOf = async (id: string) => (await store.actor(id))?.owner;
    const joinAs = async (
      node: string,
      leaseMs: number,
      name = `server of ${node}`,
      roles: readonly string[] | null = null,
    ) => {
      const facts = { version: '1.0.0', startedAt: 0, pool: 4, roles };
      return store.join({ node, leaseMs, name, charts: oneVersion, facts });
    };
    const takeOver = async (
      node: string,
      servers: 'left' | 'leftOrSilent' = 'leftOrSilent',
      charts = oneVersion,
    ) => store.takeOverFrom(node, servers, charts);
    const hour = 3_600_000;
    const resting = (id: string, revision: number) => ({
      ...save(id, revision, 0),
      actor: { ...actor(id), pending: false },
    });

    test('the server that commits a pending task has it until its end; what another one commits of it is stale', async () => {
      await joinAs('a', hour);
      await joinAs('b', hour);
      await commitAs('a', resting('bd-a', 0), resting('bd-b', 0));
      expect([await ownerOf('bd-a'), await ownerOf('bd-b')]).toEqual([null, null]);
      await commitAs('a', save('bd-a', 1, 1), save('bd-a#1', 0, 1));
      expect([await ownerOf('bd-a'), await ownerOf('bd-a#1')]).toEqual(['a', null]);

      const theirs = [save('bd-a', 2, 1), save('bd-a#1', 1, 1), save('bd-b', 1, 1)];
      const { stale } = await commitAs('b', ...theirs);

      expect(stale).toEqual(theirs.slice(0, 2));
      expect([await ownerOf('bd-a'), await ownerOf('bd-b')]).toEqual(['a', 'b']);
      expect((await commitAs('a', save('bd-a#1', 1, 1), resting('bd-a', 2))).stale).toEqual([]);
      expect([await ownerOf('bd-a'), (await commitAs('b', save('bd-a', 3, 2))).stale]).toEqual([
        null,
        [],
      ]);
    });

    test('a server that is alone takes over the attempts of the others, whose commits are refused from then on', async () => {
      await joinAs('a', hour);
      await commitAs('a', save('bd-a', 0, 1));

      await joinAs('b', hour, '*');

      expect(await ownerOf('bd-a')).toBe('b');
      await expect(commitAs('a', { entries: [line('bd-a')] })).rejects.toThrow(LeaseLostError);
      await expect((async () => store.renew('a'))()).rejects.toThrow(LeaseLostError);
      expect(await store.lastSeq()).toBe(1);
      expect((await commitAs('b', save('bd-a', 1, 1))).stale).toEqual([]);
    });

    test('a server that the store lacks, or commits of it that were answered, is told to end', async () => {
      await joinAs('a', hour);
      await store.commit({ entries: [line('bd-a')], commit: { node: 'a', number: 1 } });
      const commitAfter = (node: string, answered: number) =>
        (async () =>
          store.commit({ entries: [], commit: { node, number: answered + 1, answered } }))();
      expect((await commitAfter('a', 1)).stale).toEqual([]);

      await expect(commitAfter('a', 5)).rejects.toThrow(DatabaseGoneError);
      await expect(commitAfter('gone', 1)).rejects.toThrow(DatabaseGoneError);
      await expect((async () => store.renew('gone'))()).rejects.toThrow(DatabaseGoneError);
      expect(await store.lastSeq()).toBe(1);
    });

    test('a server that is not alone takes over what a lease held that is over, and nothing else', async () => {
      await joinAs('b', hour);
      await commitAs('b', save('bd-b', 0, 1));
      await joinAs('a', 0);
      await commitAs('a', save('bd-a', 0, 1));

      await joinAs('c', hour);
      expect(await takeOver('c', 'left')).toEqual([]);
      expect(await takeOver('c')).toEqual(['bd-a']);

      expect([await ownerOf('bd-a'), await ownerOf('bd-b')]).toEqual(['c', 'b']);
      await expect(commitAs('a', save('bd-a', 1, 1))).rejects.toThrow(LeaseLostError);
      await store.renew('b');
    });

    test('a lease that is over goes on when its server renews it, or commits, before another one comes', async () => {
      await opened.setNow(1_000_000);
      await joinAs('a', 10);
      await joinAs('b', 10);
      await commitAs('a', save('bd-a', 0, 1));
      await commitAs('b', save('bd-b', 0, 1));

      await opened.setNow(1_000_500);
      await store.renew('a');
      await commitAs('b', { entries: [] });
      await opened.setNow(1_000_505);
      await joinAs('c', 10);
      await takeOver('c');
      expect([await ownerOf('bd-a'), await ownerOf('bd-b')]).toEqual(['a', 'b']);
      await opened.setNow(1_000_511);
      await joinAs('d', 10);
      await takeOver('d');

      expect([await ownerOf('bd-a'), await ownerOf('bd-b')]).toEqual(['d', 'd']);
    });

    test('a start takes over from earlier starts of the same name, and a server that left is taken over from', async () => {
      await joinAs('a', hour, 'one');
      await joinAs('b', hour, 'two');
      await commitAs('a', save('bd-a', 0, 1));
      await commitAs('b', save('bd-b', 0, 1));

      await joinAs('a2', hour, 'one');
      expect([await ownerOf('bd-a'), await ownerOf('bd-b')]).toEqual(['a2', 'b']);
      await store.leave('b');
      expect((await store.nodes()).map(({ node, state }) => [node, state])).toEqual([
        ['b', 'left'],
        ['a2', 'live'],
      ]);

      expect(await takeOver('a2', 'left')).toEqual(['bd-b']);
      await expect((async () => takeOver('b'))()).rejects.toThrow(LeaseLostError);
      expect((await store.nodes()).map(({ node }) => node)).toEqual(['a2']);
    });

    const wish = {
      cap: 5,
      pool: 4,
      keep: 0,
      held: [] as readonly string[],
      needed: 0,
      waiting: 0,
      roles: ['engineer'],
      charts: oneVersion,
    };
    const slotsOf = async () =>
      (await store.nodes()).map(({ node, slots }): [string, number] => [node, slots]);

    test('restores of a live attempt are counted, until it finishes a step or begins, or its server leaves', async () => {
      await joinAs('a', hour);
      await commitAs('a', save('bd-a', 0, 1), save('bd-b', 0, 0));
      const count = async (node = 'a') => [
        ...(await store.countRestores(node, ['bd-a', 'bd-b', 'bd-none'])),
      ];
      const step = (result: string | null) => ({
        entries: [],
        step: { taskId: 'bd-a', attempt: 1, key: 'act:1:x', intent: '{}', result },
      });

      expect([await count(), await count()]).toEqual([[['bd-a', 1]], [['bd-a', 2]]]);
      expect(await count('b'), 'it is not with this server').toEqual([]);
      await commitAs('a', save('bd-a', 1, 1), save('bd-a#1', 0, 1), step(null));
      expect((await store.actor('bd-a'))?.restores).toBe(2);
      await commitAs('a', step('"x"'));
      expect(await count()).toEqual([['bd-a', 1]]);
      await commitAs('a', save('bd-a', 2, 2));
      expect(await count()).toEqual([['bd-a', 1]]);
      await store.forgetRestores('bd-a');
      expect(await count()).toEqual([['bd-a', 1]]);
      await store.leave('a');
      expect(await count(), 'no server died').toEqual([['bd-a', 0]]);
    });

    test('servers share the slots: each its part while nobody lacks one, else what it needs', async () => {
      await joinAs('a', hour);
      await joinAs('b', hour);

      expect(await store.share('a', wish)).toMatchObject({ slots: 2, isWanted: false });
      const busy = { ...wish, needed: 9, waiting: 7, keep: 2 };
      expect(await store.share('a', busy)).toMatchObject({ slots: 4, aim: 4 });
      expect(await store.share('b', { ...wish, needed: 3, waiting: 3 })).toEqual({
        slots: 1,
        aim: 1,
        isWanted: false,
        othersWait: true,
        othersChoose: false,
        foreign: 0,
      });
      // The other one lacks slots now: this one keeps its part, and no more than it uses.
      expect(await store.share('a', { ...busy, keep: 4 })).toMatchObject({
        slots: 4,
        aim: 2,
        isWanted: true,
      });
      expect(await store.share('a', { ...busy, keep: 3 })).toMatchObject({
        slots: 3,
        aim: 2,
      });
      expect(await store.share('b', { ...wish, needed: 3 })).toMatchObject({ slots: 2 });
      expect(await slotsOf()).toEqual([
        ['a', 3],
        ['b', 2],
      ]);
    });

    test('in every moment the slots of all servers are at most the cap, whatever they ask, take over and leave', async () => {
      const random = randomFrom(7);
      const below = (count: number): number => Math.floor(random() * count);
      const nodes = ['a', 'b', 'c', 'd'];
      const kept = new Map<string, number>();
      for (const node of nodes) await joinAs(node, hour);
      for (let step = 0; step < 60; step += 1) {
        const node = nodes[below(nodes.length)] ?? '';
        const held = kept.get(node) ?? 0;
        const running = below(held + 1);
        const needed = running + below(4);
        const asked = { ...wish, cap: 6, pool: 5, keep: running, needed };
        const { slots, aim } = await store.share(node, asked);
        expect([slots >= running, aim <= slots]).toEqual([true, true]);
        kept.set(node, slots);
        if (below(10) === 0) {
          await store.leave(node);
          kept.delete(node);
          const [other = ''] = nodes.filter((name) => name !== node);
          await takeOver(other, 'left');
          nodes.splice(nodes.indexOf(node), 1, `${node}'`);
          await joinAs(`${node}'`, hour);
        }
        const sum = (await slotsOf()).reduce((all, [, count]) => all + count, 0);
        expect(sum).toBeLessThanOrEqual(6);
      }
    });

    test('the slots of running attempts come with a dead server, and nobody gets them meanwhile', async () => {
      await joinAs('a', hour);
      await joinAs('b', 0);
      await joinAs('c', hour);
      await commitAs('b', save('bd-1', 0, 1), save('bd-2', 0, 1), save('bd-3', 0, 0));
      await store.share('b', { ...wish, cap: 3, needed: 2, keep: 2, held: ['bd-1', 'bd-2'] });
      const want = { ...wish, cap: 3, needed: 9, keep: 0 };
      expect((await store.share('c', want)).slots).toBe(1);

      expect(await takeOver('a')).toEqual(['bd-1', 'bd-2', 'bd-3']);

      expect((await store.share('c', { ...want, keep: 1 })).slots).toBe(1);
      expect(await slotsOf()).toEqual([
        ['a', 2],
        ['c', 1],
      ]);
    });

    test('a server keeps the slots of attempts that it was given and has not taken up, and gives them to no other task', async () => {
      await joinAs('a', hour, 'one');
      await joinAs('b', hour);
      await commitAs('a', save('bd-1', 0, 1), save('bd-2', 0, 1), save('bd-3', 0, 0));
      await store.share('a', { ...wish, cap: 3, needed: 2, keep: 2, held: ['bd-1', 'bd-2'] });
      await joinAs('a2', hour, 'one');
      const first = { ...wish, cap: 3 };
      const want = { ...wish, cap: 3, needed: 9 };

      expect(await store.share('a2', first)).toMatchObject({ slots: 2, aim: 0 });
      expect((await store.share('b', want)).slots).toBe(1);
      const half = { ...first, keep: 1, held: ['bd-1'], needed: 1 };
      expect(await store.share('a2', half)).toMatchObject({ slots: 2, aim: 0 });
      const whole = { ...first, keep: 2, held: ['bd-1', 'bd-2'], needed: 2 };
      expect(await store.share('a2', whole)).toMatchObject({ slots: 2, aim: 1 });
      expect((await store.share('b', { ...want, keep: 1 })).slots).toBe(1);
    });

    test('states of charts that a server does not know wait for one that does, and keep their slots', async () => {
      const two = { oldest: 2, newest: 2 };
      const of = (change: Change, version: number): Change =>
        change.actor === undefined ? change : { ...change, actor: { ...change.actor, version } };
      await joinAs('a', 0);
      await joinAs('b', hour);
      await commitAs('a', save('bd-1', 0, 1), of(save('bd-1#1', 0, 1), 2));
      await commitAs('a', of(save('bd-2', 0, 1), 2), save('bd-3', 0, 1), resting('bd-4', 0));
      await commitAs('a', save('bd-5', 0, 1), save('bd-5#1', 0, 1), of(save('bd-5', 1, 2), 2));
      const many = { ...wish, cap: 6, pool: 6, needed: 9 };

      expect(await takeOver('b')).toEqual(['bd-3']);

      expect([await ownerOf('bd-1'), await ownerOf('bd-2')]).toEqual([null, null]);
      expect(await store.withoutServer(9)).toEqual([
        { taskId: 'bd-1', version: 1 },
        { taskId: 'bd-2', version: 2 },
        { taskId: 'bd-5', version: 2 },
      ]);
      expect((await store.share('b', { ...many, keep: 1 })).slots).toBe(3);
      await expect(commitAs('a', of(save('bd-2', 1, 1), 2))).rejects.toThrow(LeaseLostError);
      await joinAs('c', hour);
      expect(await takeOver('c', 'left', two)).toEqual(['bd-2', 'bd-5']);
      expect(await slotsOf()).toEqual([
        ['b', 3],
        ['c', 2],
      ]);
      expect(await takeOver('c', 'left', { oldest: 1, newest: 2 })).toEqual(['bd-1']);
      expect(await store.withoutServer(9)).toEqual([]);
    });

    test('a server leaves waiting tasks of charts that it does not know to others, and asks for no slot for them', async () => {
      const waits = (id: string, version: number) => {
        const change = save(id, 0, 0);
        const waiting = { role: 'engineer', priority: 1 };
        return { ...change, actor: { ...change.actor, version, waits: waiting } };
      };
      await joinAs('a', hour, 'tester server', ['tester']);
      await joinAs('b', hour);
      await commitAs('a', waits('bd-1', 2), waits('bd-2', 1));
      await store.share('a', { ...wish, roles: ['tester'], waiting: 2 });

      expect(await store.share('b', wish)).toMatchObject({ foreign: 1 });
      expect(await store.takeWaiting('b', 9, able(['engineer']))).toEqual([
        { taskId: 'bd-2', from: 'a' },
      ]);
    });

    test('a server gets slots for roles that another one, which holds all slots, does not run', async () => {
      await joinAs('a', hour, 'tester server', ['tester']);
      await store.share('a', { ...wish, cap: 3 });
      await joinAs('b', hour);
      const waits = (id: string, role: string) => {
        const change = save(id, 0, 0);
        return { ...change, actor: { ...change.actor, waits: { role, priority: 1 } } };
      };
      await commitAs('a', waits('bd-1', 'engineer'), waits('bd-2', 'tester'));
      const mine = { ...wish, cap: 3, roles: ['tester'], needed: 1, waiting: 2 };
      expect(await store.share('a', { ...mine, keep: 3 })).toMatchObject({
        slots: 3,
        foreign: 0,
      });

      expect(await store.share('b', { ...wish, cap: 3 })).toMatchObject({
        ...{ slots: 0, foreign: 1, othersChoose: true },
      });
      expect(await store.share('a', mine)).toMatchObject({ slots: 1, isWanted: true });
      expect(await store.share('b', { ...wish, cap: 3 })).toMatchObject({ slots: 1 });
    });

    test('a server takes tasks that wait at another one: the most urgent first, of its roles, once', async () => {
      await joinAs('a', hour);
      await joinAs('b', hour);
      const waits = (id: string, priority: number, role = 'engineer') => {
        const change = save(id, 0, 0);
        return { ...change, actor: { ...change.actor, waits: { role, priority } } };
      };
      await commitAs('a', waits('bd-1', 3), waits('bd-2', 1), waits('bd-3', 0, 'tester'));
      await commitAs('a', save('bd-4', 0, 1), waits('bd-5', 2));
      expect(await store.takeWaiting('b', 9, able(['engineer']))).toEqual([]);
      await store.share('a', { ...wish, needed: 9, waiting: 4 });

      const taken = await store.takeWaiting('b', 2, able(['engineer', 'reviewer']));

      expect(taken).toEqual([
        { taskId: 'bd-2', from: 'a' },
        { taskId: 'bd-5', from: 'a' },
      ]);
      expect([await ownerOf('bd-2'), await ownerOf('bd-1')]).toEqual(['b', 'a']);
      expect((await commitAs('a', save('bd-2', 1, 1))).stale).toHaveLength(1);
      expect((await commitAs('b', save('bd-2', 2, 1))).stale).toHaveLength(0);
      expect(await store.takeWaiting('b', 9, able(['tester']))).toEqual([
        { taskId: 'bd-3', from: 'a' },
      ]);
    });

    test('the record of an attempt names the server that ended it', async () => {
      const usage = {
        model_calls: 1,
        tool_calls: 0,
        input_tokens: 1,
        output_tokens: 1,
        cached_tokens: 0,
      };
      const ended = line('bd-a', 'completed', { role: 'engineer', execution_seconds: 2, usage });
      await commitAs('a', { entries: [ended] });
      await store.commit({ entries: [{ ...ended, attempt: 2 }] });

      expect((await store.attempts('bd-a')).map(({ owner }) => owner)).toEqual(['a', null]);
    });

    test('tokens that were written to a cache are summed, and absent where there were none', async () => {
      const ended = (written: object, attempt: number) => {
        const counts = { model_calls: 1, tool_calls: 0, output_tokens: 1 };
        const usage = { ...counts, input_tokens: 90, cached_tokens: 20, ...written };
        const data = { role: 'engineer', execution_seconds: 2, usage };
        return { ...line('bd-a', 'completed', data), attempt };
      };
      await store.commit({ entries: [ended({}, 1)] });
      const before = await store.usage('');
      await store.commit({ entries: [ended({ cache_write_tokens: 7 }, 2)] });
      await store.commit({ entries: [ended({ cache_write_tokens: 8 }, 3)] });

      const writes = (sums: readonly { readonly cache_write_tokens?: number | undefined }[]) =>
        sums.map((each) => each.cache_write_tokens);
      expect(writes(before)).toEqual([undefined]);
      expect(writes(await store.attempts('bd-a'))).toEqual([undefined, 7, 8]);
      expect(writes(await store.usage(''))).toEqual([15]);
    });

    const seqs = (entries: readonly Entry[]) => entries.map(({ seq }) => seq);
    const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);
    const fail = (error: unknown): never => {
      throw error;
    };
    /** What a subscriber was given, call by call. */
    const subscribe = (subscription?: Subscription, wait?: () => Promise<void>) => {
      const given: (readonly Entry[])[] = [];
      const heard: number[] = [];
      let caughtUpAt: number | null = null;
      const leave = store.subscribe(
        {
          entries: (entries) => {
            given.push(entries);
            heard.push(...seqs(entries));
            return wait?.();
          },
          caughtUp: () => {
            caughtUpAt = heard.length;
          },
          failed: fail,
        },
        subscription,
      );
      return { given, heard, leave, caughtUpAt: () => caughtUpAt };
    };

    test('a subscriber gets what is after its point and goes on with what comes, without a gap and none twice', async () => {
      for (let n = 0; n < 300; n += 1)
        await store.commit({ entries: [line('bd-a'), line('bd-b')] });

      const [all, own, fresh] = [
        subscribe({ after: 0 }),
        subscribe({ after: 400, taskId: 'bd-b' }),
        subscribe(),
      ];
      for (let n = 0; n < 50; n += 1) {
        await store.commit({ entries: [line('bd-b')] });
        if (n % 5 === 0) await nextTurn();
      }

      await vi.waitFor(() => expect(all.heard.length + own.heard.length).toBe(650 + 150));
      expect(all.heard).toEqual(upTo(650));
      expect(own.heard).toEqual([
        ...upTo(600).filter((seq) => seq > 400 && seq % 2 === 0),
        ...upTo(650).slice(600),
      ]);
      await vi.waitFor(() => expect(fresh.heard).toEqual(upTo(650).slice(600)));
      // While commits follow each other fast, a reader catches up only after the last one.
      await vi.waitFor(() => expect(all.caughtUpAt()).not.toBe(null));
      expect(all.caughtUpAt()).toBeGreaterThanOrEqual(600);
      expect(fresh.caughtUpAt()).toBe(null);
    });

    test('a subscriber that is slow gets nothing more until it is done, then the rest in pieces', async () => {
      let done = (): void => {};
      const untilDone = (): Promise<void> =>
        new Promise((resolve) => {
          done = resolve;
        });
      const slow = subscribe({ after: 0 }, untilDone);
      const gone = subscribe({ after: 0 }, () => new Promise((resolve) => setTimeout(resolve, 20)));
      await store.commit({ entries: [line('bd-a')] });
      await vi.waitFor(() => expect([slow.heard, gone.heard]).toEqual([[1], [1]]));
      gone.leave();

      for (let n = 0; n < 600; n += 1) await store.commit({ entries: [line('bd-a')] });
      expect(slow.given).toHaveLength(1);

      await vi.waitFor(() => {
        done();
        expect(slow.heard).toHaveLength(601);
      });
      expect([slow.heard, gone.heard]).toEqual([upTo(601), [1]]);
      expect(Math.max(...slow.given.map((entries) => entries.length))).toBeLessThanOrEqual(256);
    });

    test('a subscriber that is slow is given large entries in small pieces, none left out', async () => {
      const data = JSON.stringify({ text: 'x'.repeat(100_000) });
      const large = Array.from({ length: 30 }, () => ({ ...line('bd-a'), data }));
      await store.commit({ entries: large });
      await store.commit({ entries: [{ ...large[0], data: data.repeat(8) } as NewEntry] });
      const slow = subscribe({ after: 0 }, () => new Promise(setImmediate));
      await vi.waitFor(() => expect(slow.heard).toEqual(upTo(31)));

      const sizes = slow.given.map((entries) =>
        entries.reduce((sum, each) => sum + each.data.length, 0),
      );
      expect(Math.max(...sizes.slice(0, -1))).toBeLessThanOrEqual(512 * 1024);
      expect(slow.given.at(-1)).toHaveLength(1);
    });

    test('a subscriber gets what other programs commit, in the order of the journal', async () => {
      const [all, own] = [subscribe(), subscribe({ after: 0, taskId: 'bd-a' })];
      await store.commit({ entries: [line('bd-a')] });
      const other = await opened.beside();
      for (let n = 0; n < 300; n += 1)
        await other.commit({ entries: [line('bd-a'), line('bd-b')] });

      await store.commit({ entries: [line('bd-b')] });
      await store.commit({ entries: [line('bd-a')] });

      await vi.waitFor(() => expect(all.heard).toEqual(upTo(603)));
      await vi.waitFor(() => expect(own.heard).toHaveLength(302));
      expect(new Set(own.heard).size).toBe(302);
    });

    test('a subscriber that throws, or leaves, gets no more; the others do', async () => {
      const failed = vi.fn();
      store.subscribe({
        entries: () => {
          throw new Error('it broke');
        },
        failed,
      });
      const [gone, other] = [subscribe(), subscribe({ after: 0 })];
      await store.commit({ entries: [line('bd-a')] });
      await vi.waitFor(() => expect(gone.heard).toEqual([1]));

      gone.leave();
      await store.commit({ entries: [line('bd-a')] });

      await vi.waitFor(() => expect(other.heard).toEqual([1, 2]));
      expect(gone.heard).toEqual([1]);
      expect(failed.mock.calls).toEqual([[new Error('it broke'), expect.any(Number)]]);
    });

    test('a new actor takes over the saved one', async () => {
      await store.commit({
        actor: actor('bd-a'),
        guard: { revision: 0, attempt: 0 },
        entries: [],
      });

      const taken = await store.takeOver('bd-a');

      expect(taken).toMatchObject(actor('bd-a'));
      const guard = { revision: taken?.revision ?? -1, attempt: 0 };
      expect((await store.commit({ actor: actor('bd-a'), guard, entries: [] })).stale).toEqual([]);
      expect(await store.takeOver('bd-b')).toBeNull();
    });

    test('pending tasks are listed without their agents and without the settled', async () => {
      await store.commit({ actor: actor('bd-a'), entries: [] });
      await store.commit({ actor: actor('bd-a#1'), entries: [] });
      await store.commit({ actor: actor('bd-b', false), entries: [] });

      expect((await store.tasks('pending')).map(({ id }) => id)).toEqual(['bd-a']);
      expect((await store.tasks('all')).map(({ id }) => id)).toEqual(['bd-a', 'bd-b']);
    });

    test('the pending tasks of a server come in the order of their last change, however many', async () => {
      const ids = Array.from({ length: 450 }, (_, n) => `bd-${n}`);
      const changeOf = (id: string): Change => ({
        ...{ actor: actor(id), guard: { revision: 0, attempt: 0 } },
        entries: [{ ...line(id), type: 'snapshot' }],
      });
      await store.commit(
        { commit: { node: 'a', number: 1 }, entries: [] },
        ...ids.toReversed().map(changeOf),
      );
      await store.commit({ commit: { node: 'b', number: 1 }, entries: [] }, changeOf('bd-other'));
      await store.commit({ actor: actor('bd-over', false), entries: [] });

      expect(await store.pendingOf('a')).toEqual(ids.toReversed());
      expect(await store.pendingCount()).toBe(451);
      const rows = await store.actors([...ids, 'bd-none']);
      expect(rows.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
      expect(rows[0]).toEqual(await store.actor(rows[0]?.id ?? ''));
    });

    test('a change that cannot be written leaves nothing behind', async () => {
      const broken = { ...line('bd-a'), data: null as unknown as string };
      const change: Change = { actor: actor('bd-a'), entries: [line('bd-a'), broken] };

      await expect((async () => store.commit(change))()).rejects.toThrow();
      expect(await store.lastSeq()).toBe(0);
      expect(await store.actor('bd-a')).toBeNull();
    });

    test('the result of a step stays when its intent arrives again later', async () => {
      const step = { taskId: 'bd-a', attempt: 1, key: 'think:1', intent: '{}', result: '"x"' };
      await store.commit({ entries: [], step });

      await store.commit({ entries: [], step: { ...step, result: null } });

      expect(await store.steps('bd-a', 1)).toEqual([step]);
    });

    test('steps are kept in the order in which they began, with what came of them, until they are forgotten', async () => {
      const step = (key: string, result: string | null = null, attempt = 1) => ({
        taskId: 'bd-a',
        attempt,
        key,
        intent: `{"is":"${key}"}`,
        result,
      });
      for (const each of [
        step('think:1'),
        step('act:1:a'),
        step('act:1:b'),
        step('folder'),
        step('think:1', '"x"', 2),
      ])
        await store.commit({ entries: [], step: each });
      await store.commit({ entries: [line('bd-a')], step: step('think:1', '{"ok":true}') });

      expect(await store.steps('bd-a', 1)).toEqual([
        step('think:1', '{"ok":true}'),
        step('act:1:a'),
        step('act:1:b'),
        step('folder'),
      ]);

      await store.commit({ entries: [], forgetSteps: { taskId: 'bd-a', attempt: 1 } });
      // It says where the work of the attempt is.
      expect(await store.steps('bd-a', 1)).toEqual([step('folder')]);
      expect(await (await opened.reopen()).steps('bd-a', 2)).toEqual([step('think:1', '"x"', 2)]);
    });

    test('a request is remembered with the change that it caused, its answer later', async () => {
      await store.commit({ entries: [line('bd-a')], request: { id: 'r1', taskId: 'bd-a' } });
      expect(await store.request('r1')).toEqual({ taskId: 'bd-a', answer: null });

      expect(await store.rememberAnswer('r1', 'bd-a', '{"ok":true}')).toBe('{"ok":true}');
      expect(await store.rememberAnswer('r1', 'bd-a', '{"ok":false}')).toBe('{"ok":true}');

      expect(await store.request('r1')).toEqual({ taskId: 'bd-a', answer: '{"ok":true}' });
      expect(await store.request('r2')).toBeNull();
    });

    test('counts stay, and stale changes are not counted', async () => {
      const ended = line('bd-a', 'completed', { execution_seconds: 1.5 });
      const called = line('bd-a', 'api_call_complete', {
        ok: false,
        input_tokens: 3,
        output_tokens: 2,
      });
      const began = line('bd-a', 'snapshot', { machine: 'agent', value: 'preparing', tags: [] });
      const save = { actor: actor('bd-a'), guard: { revision: 0, attempt: 0 } };
      await store.commit(
        { ...save, entries: [began, called] },
        { entries: [ended, line('bd-b', 'failed', {})] },
      );

      await store.commit({ ...save, entries: [ended] });

      const counted = {
        ...{ spawned: 1, completed: 1, failed: 1, cancelled: 0, callsTotal: 1, callsFailed: 1 },
        ...{ inputTokens: 3, outputTokens: 2, cachedTokens: 0, cacheWriteTokens: 0 },
        ...{ executed: 1, executionSeconds: 1.5 },
        durations: {},
      };
      expect(await store.counters()).toEqual(counted);
      expect(await (await opened.reopen()).counters()).toEqual(counted);
    });

    test('the next process reads what was committed', async () => {
      await store.commit({
        actor: actor('bd-a'),
        entries: [line('bd-a')],
        request: { id: 'r', taskId: 'bd-a' },
      });

      const next = await opened.reopen();

      expect(await next.read({ after: 0, limit: 10 })).toHaveLength(1);
      expect(await next.actor('bd-a')).toEqual({
        ...actor('bd-a'),
        revision: 1,
        owner: null,
        restores: 0,
      });
      expect((await next.commit({ entries: [line('bd-a')] })).entries[0]?.seq).toBe(2);
    });

    test('what calls cost is summed by day, month and run, also over a restart', async () => {
      const call = (at: string, data: object, type = 'api_call_complete') => ({
        ...{ taskId: 'bd-a', attempt: 1, type, at: Date.parse(at), cause: null },
        data: JSON.stringify({ ok: true, ...data }),
      });
      const run = '2026-11-01T00:00:00.000Z-x';
      await store.commit({
        entries: [
          call('2026-10-31T23:59:59.999Z', { cost_usd: 100 }),
          call('2026-11-01T00:00:00Z', { cost_usd: 1, run }),
          call('2026-11-02T10:00:00Z', { cost_usd: 2 }),
          call('2026-11-02T11:00:00Z', { cost_usd: 4, ok: false, run }),
          call('2026-11-02T12:00:00Z', { cost_usd: 8, assistant: 'codex' }, 'usage'),
          call('2026-11-02T13:00:00Z', { cost_usd: 9 }, 'usage'),
        ],
      });
      await store.commit({ entries: [call('2026-11-02T14:00:00Z', { cost_usd: 16 })] });

      const spent = { runUsd: 5, dayUsd: 30, monthUsd: 31 };
      expect(await store.spent('2026-11-02', run)).toEqual(spent);
      expect(await store.spent('2026-11-02', null)).toEqual({ ...spent, runUsd: 0 });
      expect(await (await opened.reopen()).spent('2026-11-02', run)).toEqual(spent);
    });

    test('images wait for a task for an hour, and are kept with it', async () => {
      const image = (digest: string) => ({ digest, mediaType: 'image/png', data: 'aGk=' }) as const;
      const named = (images: readonly ImageFacts[]) =>
        images.map(({ name, bytes }) => [name, bytes]);
      await opened.setNow(1_000);
      for (const digest of ['a', 'b', 'a']) await store.images.upload(image(digest), 2);

      await store.images.attach('bd-a', [
        { digest: 'b', name: 'two' },
        { digest: 'a', name: 'one' },
        { digest: 'none', name: 'none' },
      ]);
      await opened.setNow(1_000 + 3_600_001);
      await store.images.upload(image('c'), 2);

      const other = await opened.beside();
      expect(named(await other.images.attached('bd-a'))).toEqual([
        ['two', 2],
        ['one', 2],
      ]);
      expect(await other.images.find('bd-a', 'a')).toEqual(image('a'));
      expect(await other.images.find('bd-b', 'a')).toBeNull();
      expect((await other.images.uploaded(['a', 'b', 'c'])).map(({ digest }) => digest)).toEqual([
        'c',
      ]);
      for (let n = 0; n < 40; n += 1) await store.images.upload(image(`n${n}`), 2);
      const all = Array.from({ length: 40 }, (_, n) => `n${n}`);
      const left = (await store.images.uploaded([...all, 'c'])).map(({ digest }) => digest);
      expect(left.length).toBeLessThanOrEqual(33);
      expect(left).toContain('n39');
    });

    test('what an attempt read is limited, and goes with its steps', async () => {
      const read = (attempt: number, digest: string, bytes: number) =>
        store.images.keepRead('bd-a', attempt, { digest, mediaType: 'image/png', data: '' }, bytes);
      const mib = 1024 * 1024;
      await store.images.upload({ digest: 'own', mediaType: 'image/png', data: '' }, 1);
      await store.images.attach('bd-a', [{ digest: 'own', name: '' }]);

      expect(await read(1, 'a', 6 * mib)).toBe(true);
      expect(await read(1, 'a', 6 * mib)).toBe(true);
      expect(await read(1, 'b', 5 * mib)).toBe(false);
      expect(await read(2, 'b', 5 * mib)).toBe(true);
      for (let n = 0; n < 7; n += 1) expect(await read(1, `n${n}`, 1)).toBe(true);
      expect(await read(1, 'last', 1)).toBe(false);

      await store.commit({ entries: [], forgetSteps: { taskId: 'bd-a', attempt: 1 } });
      expect(await store.images.find('bd-a', 'a')).toBeNull();
      expect(await store.images.find('bd-a', 'b')).not.toBeNull();
      expect(await store.images.attached('bd-a')).toHaveLength(1);
      await store.images.forget('bd-a');
      expect(await store.images.find('bd-a', 'b')).toBeNull();
      expect(await store.images.attached('bd-a')).toEqual([]);
    });

    test('it reports that it works', async () => {
      expect((await store.check()).ok).toBe(true);
    });
  });
