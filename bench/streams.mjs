// CPU of the server per event that reaches a subscriber: 1,000 readers of one task, beside a writer
// that sends the same shared buffer to as many raw sockets. The readers live in a process of their
// own.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { cpuMs, median, openServer, openSystem, report } from './lib.mjs';

const readers = 1_000;
const events = 100;
const rounds = 9;
const token = 'bench';

const read = async ({ port, path }) => {
  let left = readers;
  const sockets = await Promise.all(
    Array.from({ length: readers }, async () => {
      const socket = connect(port, '127.0.0.1');
      let seen = 0;
      await once(socket, 'connect');
      socket.write(
        `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\n\r\n`,
      );
      await once(socket, 'data');
      socket.on('data', (chunk) => {
        for (
          let at = chunk.indexOf('event: log');
          at >= 0;
          at = chunk.indexOf('event: log', at + 1)
        )
          seen += 1;
        if (seen < events) return;
        seen -= events;
        left -= 1;
        if (left > 0) return;
        left = readers;
        process.send('round');
      });
      return socket;
    }),
  );
  process.send('ready');
  await once(process, 'message');
  for (const socket of sockets) socket.destroy();
  process.exit(0);
};

const data = JSON.stringify({ level: 'info', message: 'x'.repeat(120) });

/** A server with its readers, ready for rounds. */
const open = async (target, publish, close) => {
  const child = fork(new URL(import.meta.url), ['reader', JSON.stringify(target)]);
  await once(child, 'message');
  const round = async () => {
    const arrived = once(child, 'message');
    const before = process.cpuUsage();
    for (let n = 0; n < events; n += 1) {
      publish(n);
      await turn();
    }
    await arrived;
    return (cpuMs(before) * 1_000) / (readers * events);
  };
  const end = async () => {
    child.send('end');
    await once(child, 'exit');
    await close();
  };
  return { round, end };
};

const rawWriter = async () => {
  const sockets = new Set();
  // As every HTTP server does, or the kernel would gather frames and both would measure something
  // else.
  const server = createServer({ noDelay: true }, (socket) => {
    socket.once('data', () => {
      socket.write(
        'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n',
      );
      sockets.add(socket);
    });
    socket.on('error', () => {});
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const publish = (n) => {
    const frame = `id: ${n}\nevent: log\ndata: {"type":"log","task_id":"bd-bench","attempt":1,"seq":${n},"timestamp":"2026-01-01T00:00:00.000Z","data":${data}}\n\n`;
    const chunk = Buffer.from(`${frame.length.toString(16)}\r\n${frame}\r\n`);
    for (const socket of sockets) socket.write(chunk);
  };
  return open({ port: server.address().port, path: '/' }, publish, () => server.close());
};

const ours = async () => {
  const running = await openSystem();
  const { system, close } = running;
  const { task_id } = await system.service.create({ description: 'a task' });
  const server = await openServer(running, { token, streams: 2 * readers });
  const { port } = server;
  const entry = (n) => ({ taskId: task_id, attempt: 1, type: 'log', at: n, data, cause: null });
  const publish = (n) => system.journal.commit({ entries: [entry(n)] });
  return open({ port, path: `/stream/${task_id}` }, publish, async () => {
    await server.close();
    await close();
  });
};

if (process.argv[2] === 'reader') await read(JSON.parse(process.argv[3]));
else {
  const [raw, own] = [await rawWriter(), await ours()];
  const figures = { raw: [], own: [] };
  for (let round = 0; round < rounds; round += 1) {
    figures.raw.push(await raw.round());
    figures.own.push(await own.round());
  }
  await raw.end();
  await own.end();
  const [limit, figure] = [median(figures.raw), median(figures.own)];
  report('one event to one of 1,000 readers / raw writer', {
    ours: figure,
    limit,
    ratio: figure / limit,
    goal: 1.3,
    unit: 'us',
  });
}
