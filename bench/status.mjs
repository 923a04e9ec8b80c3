// CPU of one `status` call beside a route of the same Fastify that reads the same four rows by
// their keys and answers with the same text; through real sockets, interleaved.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { cpuMs, median, openServer, openSystem, report } from './lib.mjs';

const calls = Number(process.env.CALLS ?? 2_000);
const rounds = Number(process.env.RUNS ?? 7);
const token = 'bench';

/** The client lives in a process of its own, so that only the server's time is counted. */
const client = async ({ port, body }) => {
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  const ask = (path) =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const asked = request(
        { host: '127.0.0.1', port, path, method: 'POST', headers, agent },
        (response) => {
          response.resume();
          response.once('end', () =>
            response.statusCode === 200 ? resolve() : reject(new Error(`${response.statusCode}`)),
          );
        },
      );
      asked.once('error', reject);
      asked.end(body);
    });
  process.on('message', async (which) => {
    let left = calls;
    const work = async () => {
      while (left > 0) {
        left -= 1;
        await ask(which === 'status' ? '/a2a/status' : '/bare');
      }
    };
    await Promise.all(Array.from({ length: 16 }, work));
    process.send('done');
  });
  process.send('ready');
};

if (process.argv[2] === 'client') await client(JSON.parse(process.argv[3]));
else {
  const running = await openSystem();
  const { system, close } = running;
  const { task_id } = await system.service.create({ description: 'a task' });
  const answer = { jsonrpc: '2.0', id: 1, result: await system.service.status(task_id) };
  const reads = [
    ['select value from ledger where key = ?', 'file'],
    ['select * from tasks where id = ?', task_id],
    ['select * from actors where id = ?', task_id],
    ['select * from attempts where task_id = ?', task_id],
  ].map(([sql, key]) => ({ statement: running.db.prepare(sql), key }));
  const server = await openServer(running, {
    token,
    more: (app) =>
      app.post('/bare', async () => {
        for (const { statement, key } of reads) running.db.ask(statement.first(key));
        return answer;
      }),
  });
  const { port } = server;
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'status', params: { task_id } });
  const child = fork(new URL(import.meta.url), ['client', JSON.stringify({ port, body })]);
  await once(child, 'message');
  const figures = { status: [], bare: [] };
  for (let round = 0; round < rounds; round += 1)
    for (const which of ['bare', 'status']) {
      const before = process.cpuUsage();
      child.send(which);
      await once(child, 'message');
      figures[which].push((cpuMs(before) * 1_000) / calls);
    }
  child.kill();
  await server.close();
  await close();
  const [ours, limit] = [median(figures.status), median(figures.bare)];
  report('CPU of one status call / a route of four rows', {
    ours,
    limit,
    ratio: ours / limit,
    goal: 2.5,
    unit: 'us',
  });
}
