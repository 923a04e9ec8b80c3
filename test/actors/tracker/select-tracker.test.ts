import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createTracker } from '../../../src/actors/tracker/select-tracker.ts';
import { describeTracker } from '../../contracts/tracker.ts';
import { ledgerAt } from '../../support/ledger.ts';

let project: string;
beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), 'select-tracker-'));
});
afterEach(() => rmSync(project, { recursive: true, force: true }));

const selectedAt = (projectRoot: string, clock: () => number = Date.now) =>
  createTracker({
    ...{
      projectRoot,
      mode: 'auto',
      bdPath: null,
      processEnv: {},
      redact: (text) => text,
      ledger: () => ledgerAt(projectRoot),
    },
    ...{ clock, random: (max) => Math.floor(Math.random() * max), log: () => {} },
  });

describeTracker(
  'selected',
  async () => {
    const root = mkdtempSync(join(tmpdir(), 'select-tracker-'));
    let now = Date.parse('2026-11-20T10:00:00.000Z');
    const tick = (): number => {
      now += 1;
      return now;
    };
    return {
      tracker: selectedAt(root, tick),
      close: async () => rmSync(root, { recursive: true }),
    };
  },
  { many: 20, brief: true },
);

test('a write whose fence refuses changes nothing in the selected tracker', async () => {
  const tracker = selectedAt(project);
  const plain = { description: '', priority: 2, labels: [], dependencies: [] };
  const { id } = await tracker.create({ title: 'A task', ...plain });
  const before = await tracker.find(id);
  const fence = (): never => {
    throw new Error('the attempt is over');
  };

  const writes = [
    tracker.claim(id, fence),
    tracker.release(id, 'agent-failed', fence),
    tracker.close(id, 'done', fence),
    tracker.reopen(id, fence),
    tracker.note(id, 'a note', fence),
  ];

  for (const write of writes) await expect(write).rejects.toThrow('the attempt is over');
  expect(await tracker.find(id)).toEqual(before);
});
