import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createBdTracker } from '../../../src/actors/tracker/bd/bd.ts';
import { createBdCalls, defaultBdLimits } from '../../../src/actors/tracker/bd/calls.ts';
import { isServiceError } from '../../../src/machines/errors.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import { aTask } from '../../contracts/tracker.ts';
import {
  bdIn,
  type FakeBd,
  type Family,
  makeBd,
  makeBdProject,
  makeBroken,
} from '../../support/bd.ts';
import { isLong } from '../../support/long.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const noRequests = () => {
  throw new Error('no request creates a task here');
};

const openAt = (projectRoot: string, bdPath: string, limits = defaultBdLimits) => {
  const logged: string[] = [];
  const calls = createBdCalls({ projectRoot, bdPath, processEnv: process.env, limits });
  const tracker = createBdTracker({
    calls,
    projectRoot,
    actor: 'agent-server',
    requests: noRequests,
    log: (message, facts) => void logged.push(`${message} ${JSON.stringify(facts)}`),
  });
  return { tracker, calls, logged };
};

const open = async (family: Family = 'A-direct', limits = defaultBdLimits) => {
  const bd = makeBd(family);
  const root = await makeBdProject(bd);
  return { bd, root, ...openAt(root, bd.path, limits) };
};

const failure = async (work: Promise<unknown>) => {
  const error = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!isServiceError(error)) throw new Error(`expected a refusal, got ${String(error)}`);
  return error;
};

const commandsOf = (bd: FakeBd, from = 0): string[] =>
  bd
    .calls()
    .slice(from)
    .map(({ argv }) => argv.filter((word) => !word.startsWith('-')).join(' '));

describe('a bd that fails', () => {
  test('that is locked is retried until it is free', { tags: ['slow'] }, async () => {
    const { bd, tracker } = await open();
    const { id } = await tracker.create(aTask());
    bd.fail({ kind: 'lock', on: 'update', times: 3 });

    expect(await tracker.claim(id)).toEqual({ refusal: null });
  });

  test('that panics or is stale is retried, also to create, when nothing was written', async () => {
    const { bd, tracker } = await open();
    bd.fail({ kind: 'stale', on: 'create', times: 2 }, { kind: 'panic', on: 'show', times: 1 });

    await tracker.create(aTask({ title: 'once' }));

    expect((await tracker.list()).map(({ title }) => title)).toEqual(['once']);
  });

  test('that stays stale is read with its flag, and is not written to', {
    tags: ['slow'],
  }, async () => {
    const { bd, tracker } = await open();
    const { id } = await tracker.create(aTask());
    bd.fail({ kind: 'stale', on: 'list', times: 99 }, { kind: 'stale', on: 'update', times: 99 });

    expect(await tracker.list()).toHaveLength(1);
    expect((await failure(tracker.claim(id))).message).toMatch(/out of sync with JSONL.*bd import/);
    const late = await open('C');
    late.bd.fail({ kind: 'stale', on: 'list', times: 99 });
    expect((await failure(late.tracker.list())).message).toContain('out of sync');
  });

  test('that is killed after a claim, before its answer, is asked for the present state', async () => {
    const { bd, tracker } = await open();
    const { id } = await tracker.create(aTask());
    bd.fail({ kind: 'killed after the effect', on: 'update', times: 1 });

    expect(await tracker.claim(id)).toEqual({ refusal: null });
    expect(await tracker.find(id)).toMatchObject({
      status: 'in_progress',
      assignee: 'agent-server',
    });
  });

  test.each(['killed after the effect', 'silent after the effect'])(
    'that is %s of a create is not retried: the caller learns what to look for',
    { tags: ['slow'] },
    async (kind) => {
      const { bd, tracker } = await open('A-direct', { ...defaultBdLimits, writeMs: 8_000 });
      bd.fail({ kind, on: 'create', times: 9 });

      const error = await failure(tracker.create(aTask({ title: 'only once' })));

      expect(error.code).toBe('tracker_unavailable');
      expect(error.message).toMatch(/unknown whether the task was created; look for "only once"/);
      bd.fail();
      expect(await tracker.list()).toHaveLength(1);
    },
  );

  test('that hangs, also at SIGTERM, is ended within its limit', {
    tags: ['slow'],
  }, async () => {
    const { bd, tracker } = await open('A-direct', { ...defaultBdLimits, readMs: 1_500 });
    bd.fail({ kind: 'hang', on: 'list', stubborn: true, times: 1 });

    const error = await failure(tracker.list());

    expect(error.message).toContain('bd did not answer in time');
    expect(await tracker.list()).toEqual([]);
  });

  test('that prints warnings and much output is read', async () => {
    const { bd, tracker } = await open();
    await tracker.create(aTask());
    bd.fail(
      { kind: 'warning on stdout', on: 'list' },
      { kind: 'huge', on: 'ready', bytes: 20_000_000 },
    );

    expect(await tracker.list()).toMatchObject([{ ready: true }]);
  });

  test('that could not read the project’s file and lists nothing is an error', async () => {
    const { bd, tracker } = await open();
    bd.fail({
      kind: 'says',
      on: 'list',
      stdout: '[]\n',
      stderr: 'Auto-import skipped: parse error at line 3: bad\n',
    });

    expect((await failure(tracker.list())).message).toMatch(
      /parse error at line 3: bad; repair or remove that line/,
    );
  });

  test('an empty list beside a file with tasks is refused with the command that imports them', async () => {
    const { root, tracker } = await open();
    const line = {
      id: 'bd-a1b2',
      title: 'kept',
      status: 'open',
      created_at: '2026-11-20T10:00:00Z',
    };
    writeFileSync(
      join(root, '.beads', 'issues.jsonl'),
      `${JSON.stringify(line)}\n{"id":"bd-x","status":"tombstone"}\n`,
    );

    expect((await failure(tracker.list())).message).toMatch(
      /the 1 tasks of .*bd import -i \.beads\/issues\.jsonl/,
    );
    expect((await failure(tracker.find('bd-a1b2' as TaskId))).message).toContain(
      'bd does not know bd-a1b2',
    );
    expect(await tracker.find('bd-x' as TaskId)).toBeNull();
  });

  test.each<[string, number, string]>([
    ['frozen', 14, 'unfreeze the project'],
    ['stale', 13, 'bd import'],
  ])('that is %s says so by its exit code', async (_, code, remedy) => {
    const { bd, tracker } = await open('D');
    bd.fail({ kind: 'exit', on: 'list', code, times: 9 });

    expect((await failure(tracker.list())).message).toContain(remedy);
  });

  test.each<[string, string, RegExp]>([
    [
      'newer database',
      'Error: database schema version 12 is newer than this binary supports (9)',
      /a newer one$/,
    ],
    ['no database', 'Error: no beads database found', /agent init/],
    [
      'a server that is down',
      'Error: Dolt server appears down (connection refused)',
      /bd dolt start/,
    ],
  ])('%s: a sentence with what to do', async (_, stderr, remedy) => {
    const { bd, tracker } = await open('C');
    bd.fail({ kind: 'says', on: 'list', stderr: `${stderr}\n`, code: 1, times: 9 });

    const { message } = await failure(tracker.list());

    expect(message).toMatch(remedy);
    expect(message).not.toMatch(/\n| at /);
  });

  test.each<[string, string, RegExp]>([
    [
      'the npm shim without its binary',
      '#!/bin/sh\necho "Error: bd binary not found at /x/bd" >&2; exit 1\n',
      /does not work: Error: bd binary not found/,
    ],
    ['a binary for another machine', '\x7fELF garbage', /does not work/],
    ['a program that crashes', '#!/bin/sh\nkill -SEGV $$\n', /does not work/],
  ])('%s is broken, and nothing is written', async (_, script, words) => {
    const root = temporaryFolder();
    mkdirSync(join(root, '.beads'));
    const { tracker } = openAt(root, makeBroken(script));

    const { ok, detail } = await tracker.check();

    expect([ok, detail]).toEqual([false, expect.stringMatching(words)]);
    expect((await failure(tracker.create(aTask()))).code).toBe('tracker_unavailable');
    expect((await failure(tracker.list())).code).toBe('tracker_unavailable');
  });

  test('that disappears is reported, and found again when it is back', async () => {
    const { bd, root } = await open();
    const { tracker } = openAt(root, join(temporaryFolder(), 'bd'));

    expect((await failure(tracker.list())).message).toMatch(/install bd, or set tracker\.bd_path/);
    expect((await tracker.check()).detail).toContain('tracker.bd_path');
    expect(await openAt(root, bd.path).tracker.check()).toMatchObject({
      ok: true,
      detail: 'bd 0.49.6',
    });
  });

  test('rows that cannot be read are left out and named', async () => {
    const { bd, tracker, logged } = await open();
    const good = {
      id: 'bd-a1',
      title: 'a',
      status: 'hooked',
      created_at: '2026-11-20T10:00:00Z',
      issue_type: 'gate',
    };
    const rows = JSON.stringify([
      good,
      { id: '../x', title: 'b', created_at: 'x' },
      { id: 'bd-a2' },
    ]);
    bd.fail(
      { kind: 'says', on: 'list', stdout: rows },
      { kind: 'says', on: 'ready', stdout: '[]' },
    );

    expect(await tracker.list()).toMatchObject([
      { id: 'bd-a1', status: 'hooked', priority: 2, ready: false },
    ]);
    expect(logged.join('\n')).toMatch(/is not an issue id[\s\S]*title/);
  });

  test('older than 0.42 is used by status and reported as old', async () => {
    const { tracker, bd } = await open('old');
    const { id } = await tracker.create(aTask());

    await tracker.claim(id);

    expect(commandsOf(bd).at(-1)).toContain('update');
    expect(await tracker.find(id)).toMatchObject({
      status: 'in_progress',
      assignee: 'agent-server',
    });
    expect((await tracker.check()).detail).toMatch(/0\.41\.0, which is older than 0\.42\.0/);
  });
});

describe('calls of bd', () => {
  test('a reason or note that is too long for an argument is cut', async () => {
    const { tracker } = await open();
    const { id } = await tracker.create(aTask());

    await tracker.note(id, `nul\0${'x'.repeat(200_000)}`);

    expect(await tracker.close(id, `nul\0${'x'.repeat(200_000)}`)).toEqual({ refusal: null });
  });

  test('bd start is tried once per bd, and the answer remembered', async () => {
    const { bd, tracker } = await open();
    const tasks = [await tracker.create(aTask()), await tracker.create(aTask())];

    for (const { id } of tasks) await tracker.claim(id);

    expect(commandsOf(bd).filter((command) => command.startsWith('start'))).toHaveLength(1);
  });

  test('bd start is used where it exists', async () => {
    const { bd, tracker } = await open('wrapper');
    const { id } = await tracker.create(aTask());

    await tracker.claim(id);

    expect(commandsOf(bd).some((command) => command.includes('--claim'))).toBe(false);
    expect(await tracker.find(id)).toMatchObject({
      status: 'in_progress',
      assignee: 'agent-server',
    });
  });

  test('a lookup and a claim take at most four calls, also the first time', async () => {
    const { bd, root, tracker } = await open();
    const { id } = await tracker.create(aTask());
    const other = openAt(root, bd.path).tracker;
    const before = bd.calls().length;

    await other.find(id);
    await other.claim(id);
    await other.find(id);

    expect(commandsOf(bd, before)).toEqual([
      `show ${id}`,
      'blocked',
      `start ${id}`,
      `update ${id}`,
    ]);
  });

  test('a list takes two calls, shared by concurrent callers', async () => {
    const { bd, tracker } = await open();
    const before = bd.calls().length;

    await Promise.all([tracker.list(), tracker.list(), tracker.list()]);

    expect(commandsOf(bd, before)).toEqual(['list', 'ready']);
  });

  test('the cache expires also when the clock is set back', async () => {
    const { bd, tracker } = await open();
    const { id } = await tracker.create(aTask());
    await tracker.find(id);
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 3 * 3_600_000 });
    onTestFinished(() => void vi.useRealTimers());
    const before = bd.calls().length;

    await vi.waitFor(async () => {
      await tracker.find(id);
      expect(commandsOf(bd, before)).toContain(`show ${id}`);
    });
  });

  test('two calls never run at once', { tags: ['slow'] }, async () => {
    const { bd, root, tracker } = await open();
    bd.fail({ kind: 'slow', ms: 100, times: 6 });
    const began = Date.now();

    await Promise.all([
      tracker.list(),
      tracker.list('background'),
      tracker.find('bd-none' as TaskId),
      tracker.create(aTask()),
    ]);

    expect(Date.now() - began).toBeGreaterThanOrEqual(600);
    expect(readFileSync(join(root, '.beads', 'beads.db'), 'utf8')).toContain('A task');
  });

  test('the environment has no key, no other project, and the settings that keep bd quiet', async () => {
    const { bd, root } = await open();
    const leaky = {
      ...process.env,
      OPENAI_API_KEY: 'sk-x',
      BEADS_DIR: '/elsewhere',
      CLAUDE_CODE: '1',
      NODE_OPTIONS: '',
    };
    const calls = createBdCalls({
      projectRoot: root,
      bdPath: bd.path,
      processEnv: leaky,
      limits: defaultBdLimits,
    });
    const before = bd.calls().length;

    const given = { projectRoot: root, actor: 'a', requests: noRequests, log: () => {} };
    await createBdTracker({ calls, ...given }).list();

    const [{ env } = { env: [] }] = bd.calls().slice(before);
    expect(env).toEqual(
      expect.arrayContaining(['PATH', 'HOME', 'BEADS_NO_DAEMON', 'BD_JSON_ENVELOPE']),
    );
    for (const name of ['OPENAI_API_KEY', 'BEADS_DIR', 'CLAUDE_CODE', 'NODE_OPTIONS'])
      expect(env).not.toContain(name);
  });

  test('blockers of a parent, or outside the tracker, block a task', async () => {
    const { root, tracker } = await open();
    const [parent, child, blocker] = [
      await tracker.create(aTask({ title: 'epic' })),
      await tracker.create(aTask({ title: 'part' })),
      await tracker.create(aTask({ title: 'first' })),
    ];
    const file = join(root, '.beads', 'beads.db');
    const state = JSON.parse(readFileSync(file, 'utf8'));
    state.issues[child.id].dependencies.push({
      issue_id: child.id,
      depends_on_id: parent.id,
      type: 'parent-child',
    });
    state.issues[blocker.id].dependencies.push({
      issue_id: blocker.id,
      depends_on_id: 'external:x:y',
      type: 'blocks',
    });
    writeFileSync(file, JSON.stringify(state));

    const free = (await tracker.list()).map(({ title, ready }) => [title, ready]);
    await tracker.addDependency(parent.id, blocker.id);
    const kept = (await tracker.list()).map(({ title, ready }) => [title, ready]);

    expect(free).toEqual([
      ['epic', true],
      ['part', true],
      ['first', false],
    ]);
    expect(kept).toEqual([
      ['epic', false],
      ['part', false],
      ['first', false],
    ]);
    expect(await tracker.find(child.id)).toMatchObject({ unmet: [blocker.id], ready: false });
    expect(await tracker.claim(child.id)).toMatchObject({
      refusal: { code: 'dependencies_unmet', facts: { unmet: [blocker.id] } },
    });
    expect((await tracker.claim(blocker.id)).refusal?.code).toBe('dependencies_unmet');
  });

  test('a task with another holder is refused by name and left alone', async () => {
    const { bd, root, tracker } = await open();
    const { id } = await tracker.create(aTask());
    await bdIn(bd, root, 'update', '--claim', '--actor=amy', '--json', '--', id);
    await new Promise((resolve) => setTimeout(resolve, 600));

    expect((await tracker.claim(id)).refusal).toEqual({
      code: 'tracker_conflict',
      facts: { task_id: id, holder: 'amy' },
    });
    await tracker.release(id, 'agent-failed');
    expect(await tracker.find(id)).toMatchObject({
      status: 'in_progress',
      assignee: 'amy',
      labels: [],
    });
  });

  test('only one of two concurrent claims wins, whatever the exit code', async () => {
    const { bd, root, tracker } = await open('D');
    const { id } = await tracker.create(aTask());

    await bdIn(bd, root, 'update', '--claim', '--actor=amy', '--json', '--', id);

    expect((await tracker.claim(id)).refusal).toMatchObject({
      code: 'tracker_conflict',
      facts: { holder: 'amy' },
    });
  });
});

/** Words that a careless caller would hand to a parser, a shell or a file. */
const hostile = fc.oneof(
  fc.constantFrom(
    '-',
    '--',
    '--help',
    '-rf',
    '@/etc/passwd',
    '$(id)',
    '`id`',
    '--json',
    '{"error":"x"}',
    '',
    ' ',
  ),
  fc.string({ maxLength: 60 }),
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.constantFrom(
    'a\nb',
    'tab\there',
    '\u001b[31mred',
    'nul\0',
    '🙂'.repeat(30),
    'x'.repeat(501),
    'y'.repeat(1_000_000),
  ),
);

test('hostile titles and descriptions are stored unchanged or refused by name, and never become an option', {
  tags: ['slow'],
}, async () => {
  const { bd, tracker } = await open();
  const property = fc.asyncProperty(hostile, hostile, async (title, description) => {
    const created = await tracker
      .create(aTask({ title, description }))
      .catch((error: unknown) => error);
    if (isServiceError(created)) {
      expect(created.code).toBe('invalid_params');
      return;
    }
    expect(created).toMatchObject({ title, description });
  });
  await fc.assert(property, { numRuns: isLong ? 200 : 25 });

  for (const { argv } of bd.calls()) {
    const behind = argv.indexOf('--');
    const words = behind === -1 ? argv : argv.slice(0, behind);
    for (const word of words.slice(1)) expect(word).toMatch(/^--[a-z-]+(=|$)|^(add|remove)$/);
    for (const word of behind === -1 ? [] : argv.slice(behind + 1))
      expect(word).toMatch(/^bd-[a-z0-9]+$/);
  }
});
