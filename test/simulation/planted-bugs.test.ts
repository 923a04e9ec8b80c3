import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { temporaryFolder } from '../support/temporary.ts';
import { copyPatched, type Patch, transpileInto } from '../support/transpiled.ts';
import { type Distance, runSeeds } from './run-seeds.ts';
import type { Traits } from './traits.ts';

/** A fault as somebody could bring it in, and what the simulation must say of it. */
interface Planted extends Patch {
  /** Traits of a world in which it shows soon, so that no seed must be known. */
  readonly world?: Partial<Traits>;
  readonly store?: Distance;
  readonly says: RegExp;
}

const bugs: Readonly<Record<string, Planted>> = {
  'effects begin before the transition is committed': {
    file: 'src/actors/journal/durable-actor.ts',
    find: "const isOk = !changed(snapshot, held.next) || commit(held, event, snapshot, scope) === 'ok';",
    put: 'if (changed(snapshot, step.next)) setTimeout(() => commit(step, event, snapshot, scope), 5);\n    const isOk = true;',
    says: /./,
  },
  'a request is acknowledged before it is on disk': {
    file: 'src/actors/engine/tasks/task-commands.ts',
    find: '      await commitGathered(task);\n',
    put: '',
    world: { crash: 0.02 },
    says: /I10 a run of .* was acknowledged and is not in the journal/,
  },
  'one slot more than the cap is given': {
    file: 'src/machines/supervisor/supervisor-context.ts',
    find: 'atWork(slots).length < slots.cap',
    put: 'atWork(slots).length <= slots.cap',
    world: { cap: 1, maxTasks: 8 },
    says: /I2 \d hold a slot/,
  },
  'a parked task keeps its slot': {
    file: 'src/actors/engine/attempts/attempts.ts',
    find: "getSnapshot().hasTag('live') ?? true",
    put: "getSnapshot().context.parked !== undefined || (host.live.get(taskId)?.actor.getSnapshot().hasTag('live') ?? true)",
    world: { hasLimits: true, crash: 0 },
    says: /I2 \d+ slots are held/,
  },
  'the comments of a review are not given': {
    file: 'src/machines/review.ts',
    find: 'return { review: { continues, comments, ...',
    put: 'return { review: { continues, comments: [], ...',
    world: { hasLimits: true },
    says: /Review .* gets \[comment \d+\] 0 times; open/,
  },
  'after a restart who waits gets the slot of who ran': {
    file: 'src/machines/supervisor/supervisor-machine.ts',
    find: "'slot.retaken': { actions: { type: 'hold', params: ({ event }) => event } },",
    put: "'slot.retaken': {},",
    world: { crash: 0.02, cap: 1 },
    says: /I2|stuck/,
  },
  'a retry costs nothing': {
    file: 'src/machines/task/task-setup.ts',
    find: 'context.retriesLeft - 1',
    put: 'context.retriesLeft',
    world: { maxRetries: 1, maxModelRetries: 0, crash: 0 },
    says: /I9 attempt/,
  },
  'deadlines are forgotten at a restart': {
    file: 'src/actors/engine/tasks/task-registry.ts',
    find: 'if (isPending) ports.setDeadline(taskId, deadlineAt);',
    put: '',
    world: { crash: 0.02 },
    says: /stuck|I7 .* is parked after the end of its limit/,
  },
  'pending tasks are not taken up at a restart': {
    file: 'src/actors/engine/tasks/start-tasks.ts',
    find: '    await commands.restore(pending, await retakeSlots(pending));\n',
    put: '',
    world: { crash: 0.02 },
    says: /stuck|I2|I14/,
  },
  'a call that is done is made again after a crash': {
    file: 'src/actors/agent/tool-calls.ts',
    find: 'recall: ({ id }) => steps.call(input.turn, id)?.result ?? null,',
    put: 'recall: () => null,',
    world: { crash: 0.02 },
    says: /I10 .* was finished and is done again/,
  },
  'a command that was at work in a crash is run again unasked': {
    file: 'src/actors/agent/tool-calls.ts',
    find: "if (isRepeatable(call.tool) || onInterrupted() === 'repeat' || isRepeat(decision))",
    put: "if (call.id !== '')",
    world: { crash: 0.02, onInterrupted: 'ask', answerMs: 0 },
    says: /I10 .* done again, unasked/,
  },
  'a cancelled agent is not waited for': {
    file: 'src/actors/engine/attempts/running-work.ts',
    find: 'await work.whenAttemptEnded(taskId, attempt);',
    put: '',
    says: /I6/,
  },
  'the tracker is not told of an end': {
    file: 'src/actors/engine/attempts/task-state-work.ts',
    find: "return prepare({ kind: 'release', id: taskId, label }, fence);",
    put: 'return { refusal: null };',
    says: /I14/,
  },
  'a change of the tracker is not in the transaction of its transition': {
    file: 'src/actors/engine/tasks/task-host.ts',
    find: '...(toCommit === null ? {} : { tasks: [toCommit.edit] }),',
    put: '',
    says: /I14/,
  },
  'a commit that lost the race is carried out': {
    file: 'src/actors/store/rows/write-changes.ts',
    find: 'if (guard !== undefined && !isCurrent(actor, guard, node, rows)) return false;',
    put: '',
    store: 'far',
    says: /a commit that lost the race was carried out/,
  },
  'a commit that comes again is carried out again': {
    file: 'src/actors/store/rows/node-rows.ts',
    find: 'if (number > last) return null;',
    put: 'if (number > 0) return null;',
    store: 'far',
    // The server may see it first: its last commit is an earlier one then.
    says: /I10 a commit that came again was carried out again|lacks what this server has saved/,
  },
  'a task is closed before its results are written': {
    file: 'src/actors/engine/attempts/attempt-end.ts',
    find: '    await results.write({',
    put: '    void results.write({',
    says: /Spec 2\.1/,
  },
  'a change in the tracker while the server is away is never shown': {
    file: 'src/actors/engine/tasks/watch-tracker.ts',
    find: 'return latest !== null && shownIn(latest.data).status !== statusInTracker(task);',
    put: 'return false;',
    world: { crash: 0.02 },
    says: /I14 .* is shown as/,
  },
  'an interrupted write of the tracker is not made again': {
    file: 'src/machines/task/task-started.ts',
    find: "onError: [tellLater('closing'), toFailing],",
    put: "onError: [{ target: '#task.complete' as const, actions: 'recordEnd' as const }, toFailing],",
    world: { trackerWrites: true, storms: 20 },
    says: /I14/,
  },
  'tasks are exported before they are committed': {
    file: 'src/actors/ledger/exchange.ts',
    find: '      if (timer === null) writeIn(pauseMs());',
    put: '      void write();',
    world: { crash: 0.02, trackerWrites: false },
    says: /the file holds .* as it was never committed/,
  },
  'a failed export is not made again': {
    file: 'src/actors/ledger/exchange.ts',
    find: '      write().catch(() => writeIn(retryMs));',
    put: '      write().catch(() => {});',
    world: { storms: 30, crash: 0 },
    says: /the file does not hold/,
  },
  'an import overwrites a live attempt': {
    file: 'src/actors/ledger/take-difference.ts',
    find: "status === 'in_progress' && (yield* pending.first(id)) !== null;",
    put: 'false;',
    world: { hasOldFile: true },
    says: /an import took .* from its attempt/,
  },
  'the histories of tasks that are at work are removed': {
    file: 'src/actors/store/rows/histories.ts',
    find: "  and not exists (select 1 from actors where (id = ?1 or ${agents}) and (pending = 1 or changed_at >= ?2))\n  and not exists (select 1 from actors where id = ?1 and json(snapshot) ->> 'value' not in ${overInSql})\n  and not exists (select 1 from tasks where id = ?1 and status not in ${overInSql})",
    put: '',
    world: { removesHistories: true },
    says: /the history of the pending/,
  },
  'the branch moves to a tree that did not pass': {
    file: 'src/actors/engine/merging/merge-queue.ts',
    find: 'const cars = train.cars.slice(0, green);',
    put: 'const cars = train.cars.slice(0, green + 1);',
    world: { merges: true, hasTests: true, maxBatch: 5 },
    says: /M1 .* lands, and its tree did not pass/,
  },
  'the first of a red batch is refused, whoever broke it': {
    file: 'src/machines/merge-queue/merge-queue-context.ts',
    find: 'refusedCar(context, red - 1)',
    put: 'refusedCar(context, 0)',
    world: { merges: true, hasTests: true, maxBatch: 5 },
    says: /M4 .* is refused by mistake/,
  },
  'what a queue saved is told to nobody who waits': {
    file: 'src/actors/engine/hosting/host.ts',
    find: '        published(state);',
    put: '',
    store: 'far',
    world: { merges: true },
    says: /M7 .* was never answered/,
  },
  'a queue that a crash cut off is left as it is': {
    file: 'src/actors/engine/hosting/host.ts',
    find: 'if (owner === node && !live.failing().has(taskId)) await live.takeUp(taskId);',
    put: 'void [owner, taskId];',
    world: { merges: true, crash: 0.02 },
    says: /M[78]/,
  },
};

const seedsAtMost = 100;
let sound: string;
beforeAll(() => {
  sound = realpathSync(mkdtempSync(join(tmpdir(), 'agent-test-')));
  transpileInto(sound);
  return () => rmSync(sound, { recursive: true, force: true });
});

for (const [at, [bug, planted]] of Object.entries(bugs).entries())
  test(`a planted bug is caught: ${bug}`, {
    tags: at < 4 ? [] : ['slow'],
    timeout: 300_000,
  }, async () => {
    const { says, store, world, ...patch } = planted;
    const folder = temporaryFolder();
    copyPatched(sound, folder, patch);

    const reports = await runSeeds(folder, 1, 1 + seedsAtMost, { store, world });
    const last = reports.at(-1);

    process.stdout.write(`seed ${last?.seed}: ${last?.violations[0] ?? 'nothing'}\n`);
    expect(last?.violations.join('\n')).toMatch(says);
  });
