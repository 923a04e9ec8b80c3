import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { test } from 'vitest';
import { somebodyElse } from '../support/ledger.ts';
import { isLong } from '../support/long.ts';
import { startServer } from '../support/running.ts';
import { counts, everyCommand } from './commands.ts';
import { createExpected, newTask } from './expected.ts';
import { createHeldModel } from './held-model.ts';
import { execute } from './requests.ts';
import { type Real, settle } from './settle.ts';
import { requireStreams } from './streams.ts';

const cap = 2;
const queueLimit = 3;
const runs = Number(process.env['AGENT_TEST_RUNS'] ?? (isLong ? 1_000 : 10));
const seed = Number(process.env['AGENT_TEST_SEED'] ?? Date.now() % 1_000_000);
/** What a failure printed, to make only that one run again. */
const path = process.env['AGENT_TEST_PATH'];
const replayPath = process.env['AGENT_TEST_REPLAY'];
/** Runs wait for the clock now and then: several at once keep the machine busy. */
const lanes = path === undefined ? 6 : 1;

/** What takes longer hangs, also on a machine that does much else. */
const runLimitMs = 60_000;

/** A project with five tasks; in a crowd, four of them are asked to run, so that two wait. */
const boot = async (maxRetries: number, isCrowded: boolean) => {
  const held = createHeldModel(cap);
  const server = await startServer({ model: held.model, options: { cap, queueLimit, maxRetries } });
  // Reviews are about a file that there is.
  writeFileSync(join(server.root, 'a.js'), '');
  const as = (actor: string) => somebodyElse(server.root, actor, server.ledger);
  const real: Real = { server, held, amy: as('amy'), thief: as('agent-server') };
  const model = createExpected(cap, queueLimit, maxRetries);
  for (const priority of [2, 2, 2, 2, 1]) {
    const { result } = await server.call('create', { description: 'something', priority });
    model.tasks.push(newTask(result.task_id, priority, []));
  }
  for (const task of isCrowded ? model.tasks.slice(0, 4) : []) {
    await server.call('execute', { task_id: task.id, role: 'engineer' });
    execute(model, task, null).lead('ok');
    await settle(model, real);
  }
  return { model, real };
};

const obeys = fc.asyncProperty(
  fc.constantFrom(0, 1),
  fc.boolean(),
  fc.commands(everyCommand, {
    maxCommands: 40,
    size: 'max',
    ...(replayPath === undefined ? {} : { replayPath }),
  }),
  async (maxRetries, isCrowded, commands) => {
    const { model, real } = await boot(maxRetries, isCrowded);
    try {
      await fc.asyncModelRun(() => ({ model, real }), commands);
      await requireStreams(model, real);
    } finally {
      await real.server.stop();
      await real.server.app.close();
    }
  },
);

/** The servers of a test are let go when it is over: many runs are many tests. */
const runsInOne = 100;
const seeds = Array.from(
  { length: Math.ceil(runs / runsInOne) },
  (_, number) => seed + number * lanes,
);

test.each(path === undefined ? seeds : [seed])(
  'any commands in any order get the answers of a small model (seed %s)',
  async (first) => {
    counts.clear();
    const numRuns = Math.ceil(Math.min(runs, runsInOne) / lanes);
    const lane = (number: number) =>
      fc.assert(obeys, {
        seed: first + number,
        numRuns,
        // A failure is made smaller when its run is repeated alone.
        endOnFailure: path === undefined,
        timeout: runLimitMs,
        ...(path === undefined ? {} : { path, numRuns: 1 }),
      });

    // A lane that failed lets the others end: each has servers of its own.
    const ended = await Promise.allSettled(
      Array.from({ length: lanes }, (_, number) => lane(number)),
    );

    const carriedOut = [...counts].map(([kind, count]) => `${count} ${kind}`).join(', ');
    process.stdout.write(
      `commands, seed ${first}, ${lanes} lanes of ${numRuns} runs; ${carriedOut}\n`,
    );
    for (const each of ended) if (each.status === 'rejected') throw each.reason;
  },
  Math.min(runs, runsInOne) * 2_000 + 2 * runLimitMs,
);
