import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import Database from 'libsql';
import { expect, test } from 'vitest';
import { createSqliteStore } from '../../src/actors/store/sqlite.ts';
import { bdIn, type FakeBd, makeBd } from '../support/bd.ts';
import { openProject } from '../support/cli.ts';
import { differencesOf } from '../support/differences.ts';
import { isLong } from '../support/long.ts';
import { randomFrom, seed } from '../support/random.ts';
import { temporaryFolder } from '../support/temporary.ts';
import { transpileTests } from '../support/transpiled.ts';

const kills = Number(process.env['AGENT_TEST_KILLS'] ?? (isLong ? 500 : 2));

/**
 * A command that says when it begins and ends, and when another one of its attempt runs beside it.
 */
const command = [
  'id=$(basename "$ATS_ATTEMPT")',
  'exec 9> "lock.$id"',
  'flock -n 9 || echo "twice $id" >> log',
  'echo "begin $id" >> log',
  'sleep 0.0$(($$ % 9))',
  'echo "end $id" >> log',
].join('; ');

type Call = (method: string, params: object) => Promise<unknown>;

/** It is not at work any more, or has finished a step since it was seen. */
const hasMoved =
  (call: Call) =>
  async ({ task_id, usage }: View): Promise<boolean> => {
    const now = (await call('status', { task_id })) as View | undefined;
    if (now === undefined) return false;
    return now.status !== 'started' || JSON.stringify(now.usage) !== JSON.stringify(usage);
  };

const isClosed = ({ status }: { status: string }): boolean => status === 'closed';
type Issue = { readonly id: string; readonly status: string };

const closedInFile = (root: string): ReadonlySet<string> => {
  const lines = readFileSync(join(root, '.beads', 'issues.jsonl'), 'utf8')
    .trim()
    .split('\n');
  const issues: Issue[] = lines.map((line) => JSON.parse(line));
  return new Set(issues.filter(isClosed).map(({ id }) => id));
};

const closedInBd = async (bd: FakeBd, root: string): Promise<ReadonlySet<string>> => {
  const issues: Issue[] = JSON.parse(await bdIn(bd, root, 'list', '--all', '--json', '--limit=0'));
  return new Set(issues.filter(isClosed).map(({ id }) => id));
};

interface View {
  readonly task_id: string;
  readonly title: string;
  readonly status: string;
  readonly attempt: number;
  readonly usage?: { readonly model_calls: number; readonly tool_calls: number };
  readonly error?: { readonly code: string; readonly message: string };
}

interface Page {
  readonly tasks: readonly View[];
  readonly next_cursor?: string;
}

/** Somebody else seemed to have changed the agent: its work did not fail. */
const failedByRace = ({ error }: View): boolean =>
  error?.code === 'internal' &&
  error.message.includes('changed by another request at the same time');

/** As many tasks wait at most: kills come faster than a slow tracker lets tasks end. */
const mostWaiting = 40;

/** On the way to the far store, and on the way back. */
const longestDelayMs = isLong ? 50 : 10;

/** `far-server.ts`, ready to run. */
const farServer = (): string => {
  const folder = temporaryFolder();
  const program = join('test', 'crash', 'far-server.ts');
  const parts = ['at-once.ts', 'far-store.ts', 'random.ts'];
  transpileTests(folder, [program, ...parts.map((name) => join('test', 'simulation', name))]);
  return join(folder, program.replace(/ts$/, 'js'));
};

for (const { tracker, distance, tags } of [
  { tracker: 'embedded', distance: 'near', tags: [] },
  { tracker: 'bd', distance: 'near', tags: ['slow'] },
  { tracker: 'embedded', distance: 'far', tags: ['slow'] },
])
  test(`with the tracker ${tracker} and a ${distance} store a server that is killed ${kills} times under load loses nothing (seed ${seed})`, {
    tags,
    timeout: kills * 40_000 + 120_000,
  }, async () => {
    const random = randomFrom(seed);
    const bd = makeBd('A-direct');
    const { root, stateDir, configFile, env, start, serverFile, agent } = openProject(undefined, {
      ownServer: true,
    });
    const script = join(stateDir, '..', 'script.json');
    const work = { calls: [{ tool: 'bash', arguments: { command } }] };
    const end = { calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'done' } }] };
    writeFileSync(script, JSON.stringify({ turn_ms: 5, scripts: [{ turns: [work, work, end] }] }));
    const config = {
      server: { port: 0, register_protocol_handler: false, max_concurrent_agents: 4 },
      sandbox: { mode: 'off' },
      api: { backend: 'scripted', script },
      agent: { on_interrupted: 'repeat' },
      tracker: { mode: tracker, ...(tracker === 'bd' ? { bd_path: bd.path } : {}) },
      logging: { level: 'silent' },
    };
    writeFileSync(configFile, JSON.stringify(config));

    if (tracker === 'bd') await bdIn(bd, root, 'init', '--prefix=bd', '--quiet');

    const far = distance === 'far' ? farServer() : null;
    let boots = 0;
    const startServer = () => {
      if (far === null) return start('agent-server', ['--server']);
      boots += 1;
      const args = [far, String(seed + boots), String(longestDelayMs)];
      return spawn(process.execPath, args, {
        cwd: root,
        env,
        stdio: ['ignore', 'ignore', 'inherit'],
      });
    };
    const boot = async () => {
      let server = startServer();
      while (serverFile()?.pid !== server.pid) {
        await delay(5);
        // The first commit failed.
        if (far !== null && server.exitCode !== null) server = startServer();
      }
      const { url } = serverFile();
      const token = readFileSync(join(stateDir, 'token'), 'utf8').trim();
      const call = async (method: string, params: object) => {
        const response = await fetch(`${url}/a2a/execute`, {
          method: 'POST',
          headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
          body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
        });
        return ((await response.json()) as { result?: never }).result;
      };
      return { server, call, gone: new Promise((resolve) => server.once('exit', resolve)) };
    };

    const acknowledged = { created: new Set<string>(), executed: new Set<string>() };
    let requests = 0;
    /** A request with text that was not answered. */
    let unanswered: object | null = null;
    for (let kill = 0; kill < kills; kill += 1) {
      const { server, call, gone } = await boot();
      const load = async (): Promise<void> => {
        for (;;) {
          const task = (await call('create', { description: `task ${requests}` })) as
            | View
            | undefined;
          if (task !== undefined) acknowledged.created.add(task.task_id);
          requests += 1;
          const request_id = `request-${requests}`;
          const execution = (await call('execute', {
            task_id: task?.task_id,
            role: 'engineer',
            request_id,
          })) as View | undefined;
          if (execution !== undefined) acknowledged.executed.add(execution.task_id);
          // bd cannot write its task and our request at once.
          if (tracker === 'embedded') {
            const request_id = `once-${requests}`;
            unanswered ??= { task: `once ${requests}`, role: 'engineer', request_id };
            const made = (await call('execute', unanswered)) as View | undefined;
            if (made !== undefined) {
              acknowledged.executed.add(made.task_id);
              unanswered = null;
            }
          }
          await delay(random() * 60);
        }
      };
      const before = acknowledged.executed.size;
      const listed = async (status: string): Promise<readonly View[]> =>
        ((await call('list', { status, limit: 1_000 })) as Page | undefined)?.tasks ?? [];
      const atWork = await listed('started');
      const isAsked = ({ task_id }: View): boolean => acknowledged.executed.has(task_id);
      const isFull = (await listed('queued')).filter(isAsked).length > mostWaiting;
      const loading = isFull ? null : load().catch(() => {});
      // Every other time a run is acknowledged first, however slow the machine is.
      while (loading !== null && kill % 2 === 1 && acknowledged.executed.size === before)
        await delay(5);
      // However slow the machine is, no task sees four servers die within one of its steps.
      while (kill % 3 === 2 && !(await Promise.all(atWork.map(hasMoved(call)))).every(Boolean))
        await delay(20);
      await delay(20 + random() * 400);
      server.kill('SIGKILL');
      await gone;
      await loading;
    }

    const { call, server, gone } = await boot();
    const all = async (): Promise<View[]> => {
      const views: View[] = [];
      for (let cursor: string | undefined; ; ) {
        const page = (await call('list', {
          limit: 1_000,
          ...(cursor === undefined ? {} : { cursor }),
        })) as unknown as Page;
        views.push(...page.tasks);
        cursor = page.next_cursor;
        if (cursor === undefined) return views;
      }
    };
    let [views, changed] = [await all(), Date.now()];
    const busy = (view: View): boolean =>
      view.status === 'started' || acknowledged.executed.has(view.task_id);
    const isOver = ({ status }: View): boolean =>
      ['complete', 'failed', 'cancelled'].includes(status);
    while (views.some((view) => busy(view) && !isOver(view)) && Date.now() - changed < 15_000) {
      await delay(50);
      const now = await all();
      if (JSON.stringify(now) !== JSON.stringify(views)) changed = Date.now();
      views = now;
    }
    server.kill('SIGTERM');
    await gone;

    const byId = new Map(views.map((view) => [view.task_id, view]));
    const lost = [...acknowledged.created].filter((id) => !byId.has(id));
    const stuck = views.filter((view) => busy(view) && !isOver(view));
    const wrong = views.filter(
      (view) =>
        ['failed', 'cancelled'].includes(view.status) && !(far !== null && failedByRace(view)),
    );
    const log = existsSync(join(root, 'log'))
      ? readFileSync(join(root, 'log'), 'utf8').split('\n')
      : [];
    const once = views.map(({ title }) => title).filter((title) => title.startsWith('once '));
    const store = createSqliteStore({ file: join(stateDir, 'journal.db'), redact: (text) => text });
    const differences = await differencesOf(store);
    store.close();
    const closed = tracker === 'bd' ? await closedInBd(bd, root) : closedInFile(root);
    const disagreeing = views.filter(
      ({ task_id, status }) => closed.has(task_id) !== (status === 'complete'),
    );
    const db = new Database(join(stateDir, 'journal.db'), { readonly: true });
    const ends = db
      .prepare(
        "select task_id, count(*) as n from journal where type = 'completed' group by task_id",
      )
      .all();
    db.close();

    process.stdout.write(
      `${tracker}, ${distance}, seed ${seed}: ${kills} kills, ${acknowledged.created.size} tasks created, ${acknowledged.executed.size} runs acknowledged, ${ends.length} completed\n`,
    );
    expect({
      lost,
      stuck,
      wrong,
      twice: log.filter((line) => line.startsWith('twice')),
      differences,
      disagreeing,
      createdTwice: once.filter((title, at) => once.indexOf(title) !== at),
      endedTwice: (ends as { n: number }[]).filter(({ n }) => n > 1),
      attempts: views.filter(({ attempt }) => attempt > 1),
    }).toEqual({
      lost: [],
      stuck: [],
      wrong: [],
      twice: [],
      differences: [],
      disagreeing: [],
      createdTwice: [],
      endedTwice: [],
      attempts: [],
    });
    expect(acknowledged.executed.size).toBeGreaterThan(kills / 3);
    expect(ends.length).toBeGreaterThan(0);
    expect((await agent('list', '--json')).code).toBe(0);
  });
