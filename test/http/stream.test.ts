import { connect } from 'node:net';
import { expect, test, vi } from 'vitest';
import { createHistories } from '../../src/actors/store/rows/histories.ts';
import { createSqliteStore } from '../../src/actors/store/sqlite.ts';
import type { SseConnection } from '../../src/http/streams/sse.ts';
import { createStreams } from '../../src/http/streams/task-stream.ts';
import type { TaskId } from '../../src/machines/task.ts';
import { somebodyElse } from '../support/ledger.ts';
import { finish, hang, startServer, untilStatus } from '../support/running.ts';
import { readFrames, type SeenFrame } from '../support/sse.ts';

const newTask = async ({ call }: Awaited<ReturnType<typeof startServer>>): Promise<string> =>
  (await call('create', { description: 'a task' })).result.task_id;

const types = (frames: readonly SeenFrame[]): readonly string[] => frames.map(({ event }) => event);

const tool = { calls: [{ tool: 'find', arguments: { pattern: '*' } }], say: 'I look around.' };

test('a proxy is told to hold no frame back', async () => {
  const server = await startServer({});
  const id = await newTask(server);
  const leave = new AbortController();

  const { headers } = await fetch(`${server.base}/stream/${id}`, {
    headers: server.headers,
    signal: leave.signal,
  });
  leave.abort();

  expect(headers.get('x-accel-buffering')).toBe('no');
});

test('a live stream shows a run from its first transition to its end', async () => {
  const server = await startServer({ turns: [tool, finish('well done')] });
  const id = await newTask(server);
  const frames = readFrames(`${server.base}/stream/${id}`, server.headers, ({ event }) => {
    if (event === 'connected') void server.call('execute', { task_id: id, role: 'engineer' });
    return false;
  });

  const seen = await frames;

  expect(types(seen).slice(0, 2)).toEqual(['connected', 'snapshot']);
  expect(types(seen).slice(-3)).toEqual(['snapshot', 'completed', 'stream_closed']);
  for (const type of [
    'status_update',
    'api_call_start',
    'api_call_complete',
    'text_delta',
    'tool_start',
    'tool_end',
    'usage',
  ])
    expect(types(seen)).toContain(type);
  expect(seen.at(-2)?.body).toMatchObject({
    type: 'completed',
    task_id: id,
    attempt: 1,
    data: { result: 'well done' },
  });
});

test('ids rise strictly, and every frame has the same shape', async () => {
  const server = await startServer({ turns: [tool, finish()] });
  const id = await newTask(server);
  await server.call('execute', { task_id: id, role: 'engineer' });
  await untilStatus(server, id, 'complete');

  const frames = await readFrames(`${server.base}/stream/${id}`, server.headers);
  const journaled = frames.filter(({ id: seq }) => seq !== null);

  expect(journaled.map(({ id: seq }) => seq)).toEqual(
    server.store.read({ taskId: id, after: 0, limit: 999 }).map(({ seq }) => seq),
  );
  for (const { id: seq, event, body } of journaled) {
    expect(Object.keys(body)).toEqual(['type', 'task_id', 'attempt', 'seq', 'timestamp', 'data']);
    expect([body.seq, body.type]).toEqual([seq, event]);
  }
});

test('snapshots are forwarded after every transition, with state value, tags and task view', async () => {
  const server = await startServer({ turns: [finish()] });
  const id = await newTask(server);
  await server.call('execute', { task_id: id, role: 'engineer' });
  await untilStatus(server, id, 'complete');

  const frames = await readFrames(`${server.base}/stream/${id}`, server.headers);
  const values = frames.filter(({ event }) => event === 'snapshot').map(({ body }) => body.data);

  expect(values.filter(({ machine }) => machine === 'task').map(({ value }) => value)).toEqual([
    { queued: 'checking' },
    { queued: 'asking' },
    { queued: 'waitingForSlot' },
    { started: 'claiming' },
    { started: 'working' },
    { started: 'recording' },
    { started: 'closing' },
    'complete',
  ]);
  expect(values.filter(({ machine }) => machine === 'agent').map(({ value }) => value)).toEqual([
    'preparing',
    'thinking',
    'acting',
    'done',
  ]);
  expect(values.at(-1)).toMatchObject({
    tags: ['complete', 'settled'],
    task: { task_id: id, status: 'complete', progress: 1 },
  });
});

test('a stream cut at every frame and resumed by Last-Event-ID misses and repeats nothing', async () => {
  const server = await startServer({ turns: [tool, finish()] });
  const id = await newTask(server);
  await server.call('execute', { task_id: id, role: 'engineer' });
  await untilStatus(server, id, 'complete');
  const url = `${server.base}/stream/${id}`;
  const whole = (await readFrames(url, server.headers)).flatMap(({ id: seq }) =>
    seq === null ? [] : [seq],
  );

  for (const [index, last] of whole.entries()) {
    const rest = await readFrames(url, { ...server.headers, 'last-event-id': String(last) });

    expect(rest.flatMap(({ id: seq }) => (seq === null ? [] : [seq]))).toEqual(
      whole.slice(index + 1),
    );
    expect(rest.at(-1)?.event).toBe('stream_closed');
  }
  const byQuery = await readFrames(`${url}?after=${whole[3]}`, server.headers);
  expect(byQuery.flatMap(({ id: seq }) => (seq === null ? [] : [seq]))).toEqual(whole.slice(4));
});

test('early and late readers of a running task all see its end', async () => {
  const server = await startServer({ turns: [tool, tool, finish()] });
  const id = await newTask(server);
  const url = `${server.base}/stream/${id}`;
  const early = readFrames(url, server.headers);
  await server.call('execute', { task_id: id, role: 'engineer' });
  const others = [1, 2, 3, 4].map(() => readFrames(url, server.headers));

  for (const frames of await Promise.all([early, ...others]))
    expect(types(frames).slice(-2)).toEqual(['completed', 'stream_closed']);
});

test('a stream without an id starts with the latest snapshot of a running task', async () => {
  const server = await startServer({ turns: [hang] });
  const id = await newTask(server);
  await server.call('execute', { task_id: id, role: 'engineer' });
  await readFrames(
    `${server.base}/stream/${id}?after=0`,
    server.headers,
    ({ event }) => event === 'tool_start',
  );

  const frames = await readFrames(
    `${server.base}/stream/${id}`,
    server.headers,
    ({ event }) => event === 'snapshot',
  );

  expect(types(frames)).toEqual(['connected', 'snapshot']);
  expect(frames[1]?.body.data['value']).toBe('acting');
  await server.call('cancel', { task_id: id });
});

test('the stream of a task without journal entries starts with a snapshot that can be resumed from', async () => {
  const server = await startServer({ turns: [finish()] });
  const [other, id] = [await newTask(server), await newTask(server)];
  await server.call('execute', { task_id: other, role: 'engineer' });
  const closed = await vi.waitUntil(() => server.store.latest(other, 'stream_closed'));
  server.system.journal.flush();
  const url = `${server.base}/stream/${id}`;

  const [connected, snapshot] = await readFrames(
    url,
    server.headers,
    ({ event }) => event === 'snapshot',
  );
  await server.call('execute', { task_id: id, role: 'engineer' });
  const rest = await readFrames(url, { ...server.headers, 'last-event-id': String(snapshot?.id) });

  expect([connected?.event, connected?.id]).toEqual(['connected', null]);
  expect(snapshot).toMatchObject({
    id: closed.seq,
    body: {
      seq: snapshot?.id,
      task_id: id,
      data: { value: 'queued', tags: [], task: { task_id: id } },
    },
  });
  expect(Object.keys(snapshot?.body ?? {})).toEqual([
    'type',
    'task_id',
    'attempt',
    'seq',
    'timestamp',
    'data',
  ]);
  expect(rest.slice(1).map(({ id: seq }) => seq)).toEqual(
    server.store.read({ taskId: id, after: 0, limit: 999 }).map(({ seq }) => seq),
  );
});

test('the stream of a task that was closed elsewhere shows it and ends', async () => {
  const server = await startServer();
  const id = await newTask(server);
  await server.tracker.close(id as TaskId, 'by hand');

  const frames = await readFrames(`${server.base}/stream/${id}`, server.headers);

  expect(types(frames)).toEqual(['connected', 'snapshot', 'stream_closed']);
  expect(frames[1]?.body.data).toMatchObject({ value: 'complete', task: { status: 'complete' } });
});

test('the second attempt does not end with the end of the first', async () => {
  const server = await startServer({ turns: [finish('no', 'failed')] });
  const id = await newTask(server);
  await server.call('execute', { task_id: id, role: 'engineer' });
  await untilStatus(server, id, 'failed');
  await server.call('retry', { task_id: id });
  await untilStatus(server, id, 'failed');

  const frames = await readFrames(`${server.base}/stream/${id}?after=0`, server.headers);

  expect(types(frames).filter((type) => ['failed', 'stream_closed'].includes(type))).toEqual([
    'failed',
    'failed',
    'stream_closed',
  ]);
  expect(frames.at(-2)?.body.attempt).toBe(2);
});

test.each([
  ['an unknown task', 'bd-none', {}, 404, 'task_not_found'],
  ['a path', '..%2Fx', {}, 404, 'task_not_found'],
  ['an id that is none', '', { 'last-event-id': 'abc' }, 400, 'invalid_params'],
  ['an id from elsewhere', '', { 'last-event-id': '999999' }, 400, 'invalid_params'],
])('the stream of %s is refused in JSON', async (_, given, extra, status, code) => {
  const server = await startServer();
  const id = given || (await newTask(server));

  const response = await fetch(`${server.base}/stream/${id}`, {
    headers: { ...server.headers, ...extra } as Record<string, string>,
  });

  expect(response.status).toBe(status);
  expect(await response.json()).toMatchObject({ error: { code } });
});

test.each([
  ['?after=abc', {}, 'after: expected a frame id'],
  ['?after=1', { 'last-event-id': 'abc' }, 'Last-Event-ID: expected a frame id'],
  ['?after=999999', {}, 'after: this server has not sent that frame'],
])('the bad one of %s with %j is named', async (query, extra, message) => {
  const server = await startServer();

  const response = await fetch(`${server.base}/stream${query}`, {
    headers: { ...server.headers, ...extra },
  });

  expect(((await response.json()) as { error: { message: string } }).error.message).toMatch(
    new RegExp(`^${message}`),
  );
});

test('the stream of a task that somebody else closes ends, also when the tracker is read before the watch', async () => {
  const { call, base, headers, root, ledger } = await startServer({
    turns: [hang],
    options: { cap: 1 },
  });
  const amy = somebodyElse(root, 'amy', ledger);
  const [busy, waiting] = [
    (await call('create', { description: 'busy' })).result.task_id,
    (await call('create', { description: 'waiting' })).result.task_id,
  ];
  for (const task_id of [busy, waiting]) await call('execute', { task_id, role: 'engineer' });
  const reading = readFrames(`${base}/stream/${waiting}?after=0`, headers);

  await amy.close(waiting, 'by hand');
  await call('cancel', { task_id: busy });
  const frames = await reading;

  expect(frames.slice(-2).map(({ event }) => event)).toEqual(['completed', 'stream_closed']);
  expect((await call('explain', { task_id: waiting })).result.state).toBe('complete');
});

test('a reader joins a busy journal at any time without gap or duplicate', async () => {
  const server = await startServer();
  const id = await newTask(server);
  const { journal } = server.system;
  const line = (taskId: string, n: number) => ({
    taskId,
    attempt: 1,
    type: 'log',
    at: n,
    data: `${n}`,
    cause: null,
  });
  const url = `${server.base}/stream/${id}?after=0`;
  const whole = (): Promise<readonly SeenFrame[]> =>
    readFrames(url, server.headers, ({ body }) => Number(body.data) === 900);
  for (let n = 1; n <= 600; n += 1) journal.commit({ entries: [line(id, n)] });

  const readers = [whole()];
  for (let n = 601; n <= 900; n += 1) {
    journal.commit({ entries: [line('bd-other', 0), line(id, n)] });
    if (n % 10 === 0) await new Promise(setImmediate);
    if (n % 50 === 0) readers.push(whole());
  }

  for (const frames of await Promise.all(readers))
    expect(frames.filter(({ event }) => event === 'log').map(({ body }) => body.data)).toEqual(
      Array.from({ length: 900 }, (_, index) => index + 1),
    );
});

test('the stream of a queued task goes on after the end of an earlier attempt', async () => {
  const server = await startServer();
  const id = await newTask(server);
  const commit = (attempt: number, type: string) =>
    server.system.journal.commit({
      entries: [{ taskId: id, attempt, type, at: 1, data: '{}', cause: null }],
    });
  commit(1, 'log');
  commit(1, 'stream_closed');

  const frames = await readFrames(`${server.base}/stream/${id}?after=0`, server.headers, (seen) => {
    if (seen.event === 'log' && seen.body.attempt === 1)
      setTimeout(() => {
        commit(2, 'log');
        commit(2, 'stream_closed');
      }, 50);
    return false;
  });

  expect(frames.map(({ event, body }) => [event, body.attempt]).slice(1)).toEqual([
    ['log', 1],
    ['log', 2],
    ['stream_closed', 2],
  ]);
});

test('a reader that falls behind gets a gap with the id to resume from, and misses nothing', async () => {
  const server = await startServer();
  const id = await newTask(server);
  const socket = connect(server.port, '127.0.0.1');
  socket.write(
    `GET /stream/${id} HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nAuthorization: ${server.headers.authorization}\r\n\r\n`,
  );
  await new Promise((resolve) => socket.once('data', resolve));
  socket.pause();
  const data = JSON.stringify({ text: 'x'.repeat(60_000) });
  for (let n = 0; n < 200; n += 1) {
    server.system.journal.commit({
      entries: [{ taskId: id, attempt: 1, type: 'log', at: n, data, cause: null }],
    });
    await new Promise(setImmediate);
  }

  let text = '';
  socket.on('data', (chunk) => {
    text += chunk;
  });
  socket.resume();
  while (!text.includes('event: gap')) await new Promise((resolve) => setTimeout(resolve, 5));
  const seen = [...text.matchAll(/^id: (\d+)$/gm)].map(([, seq]) => Number(seq));
  const resumeFrom = Number(/"resume_from":(\d+)/.exec(text)?.[1]);
  const rest = await readFrames(
    `${server.base}/stream/${id}`,
    { ...server.headers, 'last-event-id': String(resumeFrom) },
    ({ body }) => body.seq === 200,
  );
  socket.destroy();

  expect(resumeFrom).toBe(seen.at(-1));
  expect(resumeFrom).toBeLessThan(200);
  const after = rest.flatMap(({ id: seq }) => (seq === null ? [] : [seq]));
  expect([...seen, ...after]).toEqual(Array.from({ length: 200 }, (_, index) => index + 1));
});

test('a reader of entries that were removed gets a gap with the id to resume from, and then what is kept', async () => {
  const server = await startServer({ turns: [finish('well done')] });
  const id = await newTask(server);
  await server.call('execute', { task_id: id, role: 'engineer' });
  await untilStatus(server, id, 'complete');
  const histories = createHistories(server.ledger.db);
  const last = server.store.lastSeq();
  expect(await histories.mark(id, Date.now() + 1_000, { at: Date.now(), days: 90 })).toBe(true);
  while (await histories.removeSome(id));
  const other = await newTask(server);
  await server.call('execute', { task_id: other, role: 'engineer' });
  await untilStatus(server, other, 'complete');

  for (const path of [`/stream/${id}`, '/stream'])
    for (const after of [0, last - 1]) {
      const late = await readFrames(`${server.base}${path}?after=${after}`, server.headers);
      expect(types(late)).toEqual(['connected', 'gap']);
      expect(late[1]?.body.data).toMatchObject({ resume_from: last });
    }
  const rest = await readFrames(
    `${server.base}/stream`,
    { ...server.headers, 'last-event-id': String(last) },
    (frame) => types([frame]).includes('completed'),
  );
  const own = await readFrames(`${server.base}/stream/${id}`, {
    ...server.headers,
    'last-event-id': String(last),
  });
  const fresh = await readFrames(`${server.base}/stream/${id}`, server.headers);

  expect(rest[1]?.id).toBe(last + 1);
  // Between them may be what the watch of the tracker saw, late on a busy machine.
  expect([types(own)[0], types(own).at(-1)]).toEqual(['connected', 'stream_closed']);
  expect(types(own)).not.toContain('gap');
  expect([types(fresh)[0], types(fresh).at(-1)]).toEqual(['connected', 'stream_closed']);
  const snapshot = fresh.find((frame) => types([frame]).includes('snapshot'));
  expect(snapshot?.body.data['task']).toMatchObject({
    status: 'complete',
    history_removed: { through_seq: last },
  });
});

test('a server that stops ends its streams with a comment', async () => {
  const server = await startServer();
  const id = await newTask(server);
  const response = await fetch(`${server.base}/stream/${id}`, { headers: server.headers });
  const text = response.text();

  await server.app.close();

  expect(await text).toMatch(/: the server stops; reconnect with Last-Event-ID\n\n$/);
});

test('GET /stream has the frames of every task', async () => {
  const server = await startServer({ turns: [finish()] });
  const [one, two] = [await newTask(server), await newTask(server)];
  let ends = 0;
  const frames = readFrames(`${server.base}/stream?after=0`, server.headers, ({ event }) => {
    if (event === 'completed') ends += 1;
    return ends === 2;
  });
  await server.call('execute', { task_id: one, role: 'engineer' });
  await server.call('execute', { task_id: two, role: 'tester' });

  const seen = await frames;

  expect(seen[0]?.event).toBe('connected');
  expect(new Set(seen.slice(1).map(({ body }) => body.task_id))).toEqual(new Set([one, two]));
});

test('GET /stream without an id starts with the latest snapshot of each running task, and misses nothing after it', async () => {
  const server = await startServer({ turns: [hang], options: { cap: 1 } });
  const [over, busy, waiting, untouched] = [
    await newTask(server),
    await newTask(server),
    await newTask(server),
    await newTask(server),
  ];
  for (const task_id of [over, busy, waiting])
    await server.call('execute', { task_id, role: 'engineer' });
  await server.call('cancel', { task_id: over });
  await untilStatus(server, over, 'cancelled');
  await readFrames(
    `${server.base}/stream/${busy}?after=0`,
    server.headers,
    ({ event }) => event === 'tool_start',
  );
  server.system.journal.flush();
  const latest = [busy, waiting]
    .map((id) => server.store.latest(id, 'snapshot')?.seq ?? 0)
    .sort((a, b) => a - b);
  const before = server.store.lastSeq();

  const frames = await readFrames(
    `${server.base}/stream`,
    server.headers,
    ({ id, event, body }) => {
      if (id === latest.at(-1)) void server.call('cancel', { task_id: waiting });
      return body.task_id === waiting && event === 'stream_closed';
    },
  );

  const ids = frames.flatMap(({ id }) => (id === null ? [] : [id]));
  expect(types(frames).slice(0, 3)).toEqual(['connected', 'snapshot', 'snapshot']);
  expect(ids.slice(0, 2)).toEqual(latest);
  const [first = 0] = ids.slice(2);
  expect(ids.slice(2)).toEqual(
    server.store.read({ after: first - 1, limit: ids.length - 2 }).map(({ seq }) => seq),
  );
  // Before the stream began, something else may have been written.
  const running = server.store
    .read({ after: before, limit: 100 })
    .filter(({ seq, taskId }) => seq < first && [busy, waiting].includes(taskId));
  expect(running).toEqual([]);
  expect(frames.some(({ body }) => body.task_id === untouched)).toBe(false);
  await server.call('cancel', { task_id: busy });
});

test('the ninth stream of a task and the eleventh of all are refused, until another one closes', async () => {
  const server = await startServer();
  const [one, other] = [await newTask(server), await newTask(server)];
  const open = (id: string) => fetch(`${server.base}/stream/${id}`, { headers: server.headers });
  const held: Response[] = [];
  for (let n = 0; n < 8; n += 1) held.push(await open(one));

  const ninth = await open(one);
  held.push(await open(other), await open(other));
  const eleventh = await open(other);

  expect(held.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 200));
  expect([ninth.status, ninth.headers.get('retry-after'), eleventh.status]).toEqual([
    429,
    '5',
    503,
  ]);
  expect(await ninth.json()).toMatchObject({ error: { code: 'too_many_streams' } });
  await held[0]?.body?.cancel();
  let again = await open(one);
  while (again.status !== 200) again = await open(one);
  for (const response of [...held.slice(1), again]) await response.body?.cancel();
});

test('streams of all tasks count against the total limit only, until one closes', async () => {
  const server = await startServer();
  const open = () => fetch(`${server.base}/stream`, { headers: server.headers });
  const held = await Promise.all(Array.from({ length: 10 }, open));

  const eleventh = await open();

  expect(held.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 200));
  expect(eleventh.status).toBe(503);
  expect(await eleventh.json()).toEqual({
    error: {
      code: 'too_many_streams',
      message: '10 streams on this server are already open; close one',
    },
  });
  await held[0]?.body?.cancel();
  let again = await open();
  while (again.status !== 200) again = await open();
  for (const response of [...held.slice(1), again]) await response.body?.cancel();
});

test('a comment keeps an idle stream alive', async () => {
  const server = await startServer({ heartbeatMs: 20 });
  const id = await newTask(server);
  const response = await fetch(`${server.base}/stream/${id}`, { headers: server.headers });
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += new TextDecoder().decode(chunk);
    if (text.includes('\n:\n\n')) break;
  }

  expect(text).toContain('\n:\n\n');
});

test('a reader that reads nothing is disconnected, and another one gets everything', {
  tags: ['slow'],
}, async () => {
  const server = await startServer({ heartbeatMs: 60 });
  const id = await newTask(server);
  const socket = connect(server.port, '127.0.0.1');
  await new Promise((resolve) => socket.once('connect', resolve));
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.on('error', () => {});
  socket.write(
    `GET /stream/${id}?after=0 HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nAuthorization: ${server.headers.authorization}\r\n\r\n`,
  );
  await new Promise((resolve) => socket.once('data', resolve));
  socket.pause();
  const data = JSON.stringify({ text: 'x'.repeat(60_000) });
  for (let n = 0; n < 120; n += 1)
    server.system.journal.commit({
      entries: [{ taskId: id, attempt: 1, type: 'log', at: n, data, cause: null }],
    });

  const others = await readFrames(
    `${server.base}/stream/${id}?after=0`,
    server.headers,
    ({ body }) => body.seq === 120,
  );
  while (
    await new Promise<boolean>((resolve, reject) =>
      server.app.server.getConnections((error, count) =>
        error ? reject(error) : resolve(count > 0),
      ),
    )
  )
    await new Promise((resolve) => setTimeout(resolve, 20));
  socket.destroy();

  await closed;
  expect(others).toHaveLength(121);
});

test('a reader that pauses costs less than 16 MB, however large what it has not read is', {
  tags: ['slow'],
}, async () => {
  const server = await startServer();
  const id = await newTask(server);
  const data = JSON.stringify({ text: 'x'.repeat(60_000) });
  for (let n = 0; n < 400; n += 1)
    await server.system.journal.commit({
      entries: [{ taskId: id, attempt: 1, type: 'log', at: n, data, cause: null }],
    });
  const readers = 10;
  const before = process.memoryUsage().rss;
  let most = before;
  const sockets = await Promise.all(
    Array.from({ length: readers }, async () => {
      const socket = connect(server.port, '127.0.0.1');
      socket.write(
        `GET /stream?after=0 HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nAuthorization: ${server.headers.authorization}\r\n\r\n`,
      );
      await new Promise((resolve) => socket.once('data', resolve));
      return socket.pause();
    }),
  );
  for (let look = 0; look < 100; look += 1) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    most = Math.max(most, process.memoryUsage().rss);
  }
  for (const socket of sockets) socket.destroy();

  expect((most - before) / readers).toBeLessThan(16 * 1024 ** 2);
});

test('the ids of the stream of every task rise, also when something is committed while it begins', async () => {
  const store = createSqliteStore({ file: ':memory:', redact: (text) => text });
  const commit = (id: string): void => {
    const actor = { id, taskId: id, version: 1, pending: true, changedAt: 1, snapshot: '{}' };
    const entry = { taskId: id, attempt: 0, type: 'snapshot', at: 1, data: '{}', cause: null };
    store.commit({ actor, entries: [entry] });
  };
  commit('bd-a');
  const reads = {
    ...store,
    latestOfPending: (type: string) => {
      commit('bd-b');
      return store.latestOfPending(type);
    },
  };
  const sent: string[] = [];
  const connection: SseConnection = {
    write: (frames) => void sent.push(frames),
    share: ({ plain }) => void sent.push(plain.toString()),
    buffered: () => 0,
    drained: async () => {},
    end: () => {},
    onClose: () => {},
    closed: () => false,
  };

  createStreams(reads, (error) => expect.unreachable(String(error))).every(connection, null);
  await vi.waitFor(() => expect(sent.join('')).toContain('bd-b'));
  commit('bd-c');
  await vi.waitFor(() => expect(sent.join('')).toContain('bd-c'));

  expect(sent.join('').match(/(?<=^id: )\d+/gm)).toEqual(['1', '2', '3']);
  store.close();
});
