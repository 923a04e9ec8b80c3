// What 50 open pull requests cost a server while nothing moves: requests and CPU of a minute. The
// forge is a process of its own, which answers the look for all of them and each single one.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createGitHub } from '../build/actors/forge/github.js';
import { cpuMs, openSystem, openWorktrees, report } from './lib.mjs';

const count = 50;
const pulses = Number(process.env.PULSES ?? 30);
/** A wake makes the server ask, at most once a second. */
const pauseMs = 1_100;
/** Pauses of 10, 20, 40, 80, 160 s and then of 300 s, over the first hour in which nothing moves. */
const pulsesOfMinute = 16 / 60;
const goal = { requests: 10, cpuMs: 20 };
const sha = 'a'.repeat(40);

const shown = (number) => ({
  ...{ number, node_id: `${number}`, html_url: `http://forge.example/pull/${number}` },
  ...{ state: 'open', title: 'a', body: '', merged_at: null, mergeable: true },
  ...{ mergeable_state: 'clean', head: { sha, ref: `${number}` }, base: { ref: 'main' } },
});
const digested = {
  ...{ state: 'OPEN', isDraft: false, headRefOid: sha, mergeable: 'MERGEABLE' },
  ...{ mergeStateStatus: 'CLEAN', updatedAt: '2026-11-01T00:00:00Z', reviewDecision: null },
  commits: { nodes: [{ commit: { statusCheckRollup: { state: 'SUCCESS' } } }] },
};
const answers = [
  [/check-runs/, () => ({ check_runs: [] })],
  [/\/status/, () => ({ statuses: [] })],
  [/\/reviews/, () => []],
  [/\/pulls\?/, () => []],
  [/\/pulls\/(\d+)/, ([, number]) => shown(Number(number))],
  [/\/shop$/, () => ({ default_branch: 'main', owner: { login: 'acme' } })],
];

const serveForge = () => {
  let opened = 0;
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const found = answers.map(([pattern, answer]) => [pattern.exec(request.url), answer]);
    const [match, answer] = found.find(([hit]) => hit !== null) ?? [];
    const aliases = [...body.matchAll(/(p\d+): pull/g)].map(([, alias]) => [alias, digested]);
    const isPulse = request.url.endsWith('/graphql');
    const single = request.method === 'POST' ? shown(++opened) : answer?.(match);
    const data = isPulse ? { data: { repository: Object.fromEntries(aliases) } } : single;
    response.setHeader('content-type', 'application/json').end(JSON.stringify(data));
  });
  server.listen(0, '127.0.0.1', () => process.send(server.address().port));
};

const measure = async () => {
  const child = fork(fileURLToPath(import.meta.url), ['forge']);
  const [port] = await once(child, 'message');
  const forge = createGitHub({
    ...{ apiUrl: `http://127.0.0.1:${port}/api/v3`, repository: 'acme/shop' },
    ...{ token: () => 'x', now: Date.now, pauseMs: 1 },
  });
  // The budget of an hour would end the measurement after a few looks.
  const unbounded = { ...forge, sent: () => 0 };
  const place = {
    forge: unbounded,
    repository: 'acme/shop',
    url: 'http://forge.example',
    token: null,
  };
  const worktrees = openWorktrees(1);
  const write = { tool: 'write', arguments: { path: 'a.txt', content: 'x\n' } };
  const finish = { tool: 'finish', arguments: { status: 'done', summary: 'done' } };
  const { system, close } = await openSystem(
    {
      publishing: { publish: 'never', draft: false, pauseMs: [10_000, 300_000], checksWaitMs: 0 },
    },
    {
      scripts: [{ turns: [{ calls: [write] }, { calls: [finish] }] }],
      forge: async () => place,
      workspace: async (folder) => ({
        ...(await worktrees.workspace(folder)),
        push: async () => ({ status: 'pushed', commit: sha }),
      }),
    },
  );
  const { service } = system;
  const of = async (repository) => {
    const [sent, cpu] = [forge.sent(), process.cpuUsage()];
    for (let n = 0; n < pulses; n += 1) {
      await system.wakeForge(repository);
      await delay(pauseMs);
    }
    return { requests: forge.sent() - sent, cpu: cpuMs(cpu) };
  };
  try {
    const ids = [];
    for (let n = 0; n < count; n += 1) {
      const { task_id: id } = await service.create({ description: `task ${n}` });
      await service.execute({ task: id, role: 'engineer', options: {} });
      ids.push(id);
    }
    while ((await service.list({ status: 'complete' })).tasks.length < count) await delay(100);
    for (const id of ids) await service.publish({ taskId: id });
    // Each one is looked at once more.
    await of('acme/shop');
    // The same time without a pulse, before and after.
    const before = await of('acme/other');
    const idle = await of('acme/shop');
    const after = await of('acme/other');
    const rest = (before.cpu + after.cpu) / 2;
    const each = Math.max(idle.cpu - rest, 0) / Math.max(idle.requests, 1);
    console.log(
      `  ${idle.requests} requests, ${idle.cpu.toFixed(0)} ms CPU; without them ${rest.toFixed(0)} ms`,
    );
    report(`requests of an idle minute, ${count} pull requests`, {
      ...{ ours: pulsesOfMinute, limit: goal.requests, goal: 1, unit: '' },
      ratio: pulsesOfMinute / goal.requests,
    });
    report(`CPU of an idle minute, ${count} pull requests`, {
      ...{ ours: each * pulsesOfMinute, limit: goal.cpuMs, goal: 1 },
      ratio: (each * pulsesOfMinute) / goal.cpuMs,
    });
  } finally {
    await close();
    worktrees.remove();
    child.kill();
  }
};

await (process.argv[2] === 'forge' ? serveForge() : measure());
