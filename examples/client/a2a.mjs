// Gives the server a task by A2A (Agent2Agent), prints what happens, and answers questions on the
// terminal. Any A2A client works; this is the official one.
//
//   npm install @a2a-js/sdk
//   node a2a.mjs http://127.0.0.1:8080 "$(agent token)" "Add a --json flag" [role]
import { createInterface } from 'node:readline/promises';
import { TaskState } from '@a2a-js/sdk';
import { ClientFactory, ClientFactoryOptions, JsonRpcTransportFactory } from '@a2a-js/sdk/client';

const [url, token, text, role] = process.argv.slice(2);
if (text === undefined) {
  console.error('usage: node a2a.mjs <server url> <token> <what to do> [role]');
  process.exit(2);
}

const fail = (error) => {
  console.error(error.message);
  process.exit(1);
};
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
const card = role === undefined ? undefined : `/agents/${role}/.well-known/agent-card.json`;
const client = await factory.createFromUrl(url, card).catch(fail);

const textOf = (parts = []) => parts.map(({ content }) => content?.value ?? '').join('');
const send = async (words, taskId = '') => {
  const part = { content: { $case: 'text', value: words }, filename: '', mediaType: '' };
  const message = { messageId: crypto.randomUUID(), role: 1, parts: [part], taskId, contextId: '' };
  const request = { tenant: '', message: { ...message, extensions: [], referenceTaskIds: [] } };
  let last = { id: taskId, state: 0, says: '' };
  for await (const { payload } of client.sendMessageStream(request)) {
    const { value } = payload;
    if (payload.$case === 'artifactUpdate') {
      console.log(`${value.artifact.name || value.artifact.artifactId}: ${textOf(value.artifact.parts)}`);
      continue;
    }
    const state = value.status.state;
    const says = textOf(value.status.message?.parts);
    if (state !== last.state) console.log(`${TaskState[state]} ${says}`);
    last = { id: value.id ?? value.taskId, state, says };
  }
  return last;
};

let last = await send(text).catch(fail);
const terminal = createInterface({ input: process.stdin, output: process.stdout });
while (last.state === TaskState.TASK_STATE_INPUT_REQUIRED)
  last = await send(await terminal.question(`${last.says} `), last.id).catch(fail);
terminal.close();
process.exitCode = last.state === TaskState.TASK_STATE_COMPLETED ? 0 : 1;
