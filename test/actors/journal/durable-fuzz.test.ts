import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { durable } from '../../../src/actors/journal/durable-actor.ts';
import { isLong } from '../../support/long.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { copyPatched, type Patch, transpileInto } from '../../support/transpiled.ts';
import { type FuzzReport, fuzz } from './fuzz/fuzz.ts';

const count = isLong ? 2_000 : 60;
const first = isLong ? 1 + (Date.now() % 1_000_000) : 1;

const firstFault = async (make: typeof durable, from: number, to: number) => {
  const reports: FuzzReport[] = [];
  for (let seed = from; seed < to; seed += 1) {
    const report = await fuzz(seed, make);
    reports.push(report);
    if (report.violations.length > 0) return { seed, reports, violations: report.violations };
  }
  return { seed: null, reports, violations: [] };
};

test(`${count} seeds: whatever the store does, nothing happens before its commit, twice or out of order`, {
  timeout: 600_000,
}, async () => {
  const { seed, reports, violations } = await firstFault(durable, first, first + count);

  expect({ seed, violations }).toEqual({ seed: null, violations: [] });
  const kinds = new Set(reports.flatMap(({ answers }) => Object.keys(answers)));
  expect(kinds).toEqual(
    new Set(['at once', 'later', 'stale', 'failed', 'failed after', 'never', 'late']),
  );
  expect(reports.reduce((sum, { commits }) => sum + commits, 0)).toBeGreaterThan(20 * count);
});

const folderOf = 'src/actors/journal';
const faults: Readonly<Record<string, Patch>> = {
  'effects run before the commit': {
    file: `${folderOf}/durable-actor.ts`,
    find: 'held.push(() => scope.actionExecutor(action));',
    put: 'scope.actionExecutor(action);',
  },
  'the events that wait are taken in reverse': {
    file: `${folderOf}/durable-actor.ts`,
    find: 'mailbox.events.shift()',
    put: 'mailbox.events.pop()',
  },
  'the work of an actor that ends in error is not stopped': {
    file: `${folderOf}/durable-actor.ts`,
    find: '      stopChildren(scope, snapshot);\n      throw error;',
    put: '      throw error;',
  },
  'a commit has no deadline': {
    file: `${folderOf}/durable-actor.ts`,
    find: 'later(() => settle(lateCommit()), deadlineMs)',
    put: 'later(() => {}, deadlineMs)',
  },
  'the snapshot is shown before the commit': {
    file: `${folderOf}/durable-actor.ts`,
    find: 'return isOk ? publish(held, scope) : snapshot;',
    put: 'return isOk ? publish(held, scope) : held.next;',
  },
  'the end of stopped work counts for the next': {
    file: `${folderOf}/durable-actor.ts`,
    find: 'child !== undefined && childOf(snapshot, event) !== child;',
    put: 'false;',
  },
  'a cancelled timer fires': {
    file: `${folderOf}/durable-actor.ts`,
    find: 'mailbox.events.filter(({ event }) => !effects.cancels(event.type))',
    put: 'mailbox.events.filter(() => effects !== undefined)',
  },
};

test('planted faults are found', { tags: ['slow'], timeout: 300_000 }, async () => {
  const sound = temporaryFolder();
  transpileInto(sound);
  for (const [fault, patch] of Object.entries(faults)) {
    const folder = temporaryFolder();
    copyPatched(sound, folder, patch);
    const file = pathToFileURL(join(folder, `${folderOf}/durable-actor.js`)).href;
    const broken = (await import(/* @vite-ignore */ file)) as { readonly durable: typeof durable };

    const { violations } = await firstFault(broken.durable, 1, 200);

    expect(violations, fault).not.toEqual([]);
  }
});
