import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { NoAnswerError, sendHttpRequest } from '../../../src/cli/client/http-request.ts';
import { type Address, type HttpRequest, readBody } from '../../../src/cli/client/transport.ts';

const listen = async (server: Server): Promise<string> => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
};

/** A listener that gets the text of each request once its head is there. */
const serve = async (answer: (socket: Socket, asked: string) => void) => {
  const asked: string[] = [];
  const server = createServer((socket) => {
    let text = '';
    socket.setEncoding('utf8').on('error', () => {});
    socket.on('data', (part) => {
      text += part;
      if (!text.includes('\r\n\r\n')) return;
      asked.push(text);
      answer(socket, text);
    });
  });
  onTestFinished(() => void server.close());
  return { asked, url: await listen(server) };
};

const get: HttpRequest = { method: 'GET', idleMs: 10_000 };
const ask = async (url: string, request = get, path = '/a?b=c', token = '') => {
  const answer = await sendHttpRequest({ url, token }, path, request);
  return { status: answer.status, body: await readBody(answer) };
};

test('a request is sent as it is given, with its token and the length of its body', async () => {
  const { url, asked } = await serve((socket) =>
    socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'),
  );

  await ask(url, get, '/health');
  await ask(
    url,
    { ...get, method: 'POST', headers: { 'content-type': 'application/json' }, body: '"ü"' },
    '/a',
    'secret',
  );

  const { host } = new URL(url);
  expect(asked).toEqual([
    `GET /health HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\nuser-agent: agent-cli\r\n\r\n`,
    `POST /a HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\nuser-agent: agent-cli\r\ncontent-type: application/json\r\nauthorization: Bearer secret\r\ncontent-length: 4\r\n\r\n"ü"`,
  ]);
});

const bytewise = (socket: Socket, text: string): void => {
  const bytes = Buffer.from(text);
  const next = (at: number): void =>
    void (at === bytes.length
      ? socket.end()
      : socket.write(bytes.subarray(at, at + 1), () => setImmediate(next, at + 1)));
  socket.setNoDelay(true);
  next(0);
};

test.each([
  ['a length', 'Content-Length: 8\r\n\r\n{"ü":1}', 'is left out'],
  ['chunks', 'transfer-encoding: chunked\r\n\r\n4;x=y\r\n{"ü\r\n4\r\n":1}\r\n0\r\n\r\n', ''],
  ['the end of the connection', '\r\n{"ü":1}', ''],
])('an answer with %s is read, however it is cut into packets', async (_, rest, more) => {
  const answer = `HTTP/1.1 404 Not Found\r\nX-Other: a:b\r\n${rest}`;
  const { url } = await serve((socket) => socket.end(answer + more));
  const slow = await serve((socket) => bytewise(socket, answer));

  const read = [await ask(url), await ask(slow.url)];

  const wanted = { status: 404, body: '{"ü":1}' };
  expect(read).toEqual([wanted, wanted]);
});

test.each([
  ['is no HTTP', 'SSH-2.0-OpenSSH_9.2\r\n\r\n', 'the answer is not HTTP'],
  ['ends in a header', 'HTTP/1.1 200 OK\r\ncontent-', 'the answer was cut'],
  [
    'ends before its length',
    'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok',
    'the answer was cut',
  ],
  [
    'ends between its chunks',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n',
    'the answer was cut',
  ],
  [
    'has a chunk without a size',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nok\r\n0\r\n\r\n',
    'the answer is not HTTP',
  ],
  [
    'has a chunk that is longer than its size',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nok\r\n0\r\n\r\n',
    'the answer is not HTTP',
  ],
  [
    'has a length that is none',
    'HTTP/1.1 200 OK\r\ncontent-length: two\r\n\r\nok',
    'the answer is not HTTP',
  ],
  [
    'has an endless header',
    `HTTP/1.1 200 OK\r\nx: ${'x'.repeat(200_000)}`,
    'a header of the answer is too long',
  ],
  [
    'has endless headers',
    `HTTP/1.1 200 OK\r\n${Array.from({ length: 300 }, (_, n) => `x-${n}: 1\r\n`).join('')}\r\n`,
    'the answer has too many headers',
  ],
])('an answer that %s is refused, and its connection closed', async (_, answer, reason) => {
  let isClosed: () => void = () => {};
  const closed = new Promise<void>((resolve) => {
    isClosed = resolve;
  });
  const { url } = await serve((socket) => {
    socket.once('close', () => isClosed());
    socket.end(answer);
  });

  await expect(ask(url)).rejects.toThrow(reason);
  await closed;
});

test('a server that does not answer is given up, also in the middle of an answer', async () => {
  const silent = await serve(() => {});
  const halting = await serve((socket) =>
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok'),
  );

  for (const { url } of [silent, halting])
    await expect(ask(url, { ...get, idleMs: 100 })).rejects.toThrow(NoAnswerError);
});

test('a reader that leaves or aborts closes the connection', async () => {
  const left: string[] = [];
  const { url } = await serve((socket, asked) => {
    socket.once('close', () => left.push(asked.slice(0, 10)));
    socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n');
  });
  const abort = new AbortController();

  for await (const _ of (await sendHttpRequest({ url, token: '' }, '/leave', get)).body) break;
  const aborted = await sendHttpRequest({ url, token: '' }, '/abort', {
    ...get,
    signal: abort.signal,
  });
  const reading = readBody(aborted);
  abort.abort();

  await expect(reading).rejects.toThrow(/abort/i);
  await expect.poll(() => left.sort()).toEqual(['GET /abort', 'GET /leave']);
});

test('nobody listens: the error says so by its code', async () => {
  const server = createServer();
  const url = await listen(server);
  await new Promise((resolve) => server.close(resolve));

  await expect(ask(url)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
});

test.each<[string, Partial<Address>, string, object]>([
  ['the token', { token: 'a\r\nx: y' }, '/', {}],
  ['a header', {}, '/', { 'last-event-id': '1\r\nx: y' }],
])('%s cannot add a header', async (_, address, path, headers) => {
  const { url, asked } = await serve((socket) => socket.end());
  const request = { ...get, headers: { ...headers } };

  await expect(sendHttpRequest({ url, token: '', ...address }, path, request)).rejects.toThrow(
    'printable ASCII',
  );
  expect(asked).toEqual([]);
});

test('an address that is not http gets no token', async () => {
  const { url, asked } = await serve((socket) => socket.end());

  await expect(ask(url.replace('http:', 'https:'), get, '/', 'secret')).rejects.toThrow(
    'the address is not http: https:',
  );
  expect(asked).toEqual([]);
});
