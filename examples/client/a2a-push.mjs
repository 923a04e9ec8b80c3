// Gives the server a task by A2A (Agent2Agent) and does not stay connected: the server posts each
// change to this program, which checks the signature.
//
//   npm install @a2a-js/sdk
//   node a2a-push.mjs http://127.0.0.1:8080 "$(agent token)" "Add a --json flag"
import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import { text as bodyOf } from 'node:stream/consumers';
import { ClientFactory, ClientFactoryOptions, JsonRpcTransportFactory } from '@a2a-js/sdk/client';

const [server, token, words] = process.argv.slice(2);
if (words === undefined) {
  console.error('usage: node a2a-push.mjs <server url> <token> <what to do>');
  process.exit(2);
}

/** What only the server and this receiver know; it is also the key of the signature. */
const secret = randomUUID();
const oldestSeconds = 5 * 60;

const isSigned = (headers, body) => {
  const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': given = '' } = headers;
  if (!(Math.abs(Date.now() / 1_000 - Number(at)) <= oldestSeconds)) return false;
  const hash = createHmac('sha256', secret).update(`${id}.${at}.${body}`).digest('base64');
  const expected = Buffer.from(`v1,${hash}`);
  const actual = Buffer.from(given);
  return actual.length === expected.length && timingSafeEqual(actual, expected);
};

const show = ({ statusUpdate, artifactUpdate }) => {
  const { name, artifactId } = artifactUpdate?.artifact ?? {};
  if (artifactId !== undefined) console.log(name || artifactId);
  const { state, message } = statusUpdate?.status ?? {};
  if (state === undefined) return false;
  console.log(state, (message?.parts ?? []).map(({ text = '' }) => text).join(''));
  return /_(COMPLETED|FAILED|CANCELED|REJECTED)$/.test(state);
};

const seen = new Set();
const receiver = createServer(async (request, response) => {
  const body = await bodyOf(request);
  if (!isSigned(request.headers, body)) return response.writeHead(401).end();
  // An answer that is lost is followed by the same message again.
  const id = request.headers['webhook-id'];
  const isOver = !seen.has(id) && show(JSON.parse(body));
  seen.add(id);
  response.writeHead(204).end(() => isOver && receiver.close());
});
await new Promise((listening) => receiver.listen(0, '127.0.0.1', listening));

const fetchImpl = (input, init) => {
  const headers = new Headers(init?.headers);
  headers.set('authorization', `Bearer ${token}`);
  return fetch(input, { ...init, headers });
};
const factory = new ClientFactory(
  ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    transports: [new JsonRpcTransportFactory({ fetchImpl })],
  }),
);
const part = { content: { $case: 'text', value: words }, filename: '', mediaType: '' };
const message = { messageId: randomUUID(), role: 1, parts: [part], taskId: '', contextId: '' };
const url = `http://127.0.0.1:${receiver.address().port}/`;
try {
  const client = await factory.createFromUrl(server);
  const task = await client.sendMessage({
    tenant: '',
    message: { ...message, extensions: [], referenceTaskIds: [] },
    configuration: {
      acceptedOutputModes: [],
      returnImmediately: true,
      taskPushNotificationConfig: { tenant: '', id: '', taskId: '', url, token: secret },
    },
  });
  console.log(task.id);
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
