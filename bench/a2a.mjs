// A task of A2A whose agent writes 2,000 chunks, from the message to the end of its stream, beside the
// same with the server of the official SDK. Ours is the whole run of an agent, kept in the journal:
// text that comes at once is gathered, so the rows below it measure one durable entry and one frame
// for each chunk. The SDK keeps tasks in memory; its executor publishes without waiting.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import {
  AgentEvent,
  DefaultRequestHandler,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  ServerCallContext,
} from '@a2a-js/sdk/server';
import { cpuMs, median, openServer, openSystem, report, timed } from './lib.mjs';

const token = 'bench';
const text = 'x'.repeat(40);
const rounds = 3;
const long = 2_000;

const send = (words) => ({
  message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: words }] },
});

/** Reads one stream, until it has `chunks` texts or to its end. */
const read = async (
  port,
  method,
  params,
  chunks,
  { onOpen = async () => {}, toEnd = false } = {},
) => {
  const response = await fetch(`http://127.0.0.1:${port}/a2a`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  if (!response.headers.get('content-type').startsWith('text/event-stream'))
    throw new Error(await response.text());
  const opened = onOpen();
  let [seen, frames, rest] = [0, 0, ''];
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    const parts = (rest + piece).split('\n\n');
    rest = parts.pop();
    for (const part of parts) {
      if (!part.includes('artifactUpdate')) continue;
      seen += part.split(text).length - 1;
      frames += 1;
    }
    if (!toEnd && seen >= chunks) break;
  }
  await opened;
  if (seen !== chunks) throw new Error(`${seen} texts instead of ${chunks}`);
  return frames;
};

/** A model whose agent writes the chunks one by one, then finishes. */
const writes = (model, chunks) => ({
  ...model,
  async *ask(request, signal) {
    for (let n = 0; n < chunks; n += 1) yield { type: 'text', delta: text };
    for await (const event of model.ask(request, signal))
      yield event.type === 'answered' ? { ...event, text: text.repeat(chunks) } : event;
  },
});

const ours = async () => {
  const running = await openSystem({}, { wrap: (model) => writes(model, long) });
  const { system, close } = running;
  const server = await openServer(running, { token });
  const run = () =>
    timed(() => read(server.port, 'SendStreamingMessage', send('go'), long, { toEnd: true }));
  /** CPU of both ends for a chunk, in us, where each is an entry and a frame of its own. */
  const single = async (chunks) => {
    const { task_id } = await system.service.create({ description: 'a task' });
    const entry = { taskId: task_id, attempt: 1, type: 'text_delta', cause: null };
    const data = JSON.stringify({ text });
    const onOpen = async () => {
      const saved = [];
      for (let n = 0; n < chunks; n += 1) {
        saved.push(system.journal.commit({ entries: [{ ...entry, data, at: n }] }));
        await turn();
      }
      await Promise.all(saved);
    };
    const before = process.cpuUsage();
    const began = performance.now();
    const frames = await read(server.port, 'SubscribeToTask', { id: task_id }, chunks, { onOpen });
    const ms = performance.now() - began;
    return { us: (cpuMs(before) * 1_000) / chunks, frames, ms };
  };
  const end = async () => {
    await server.close();
    await close();
  };
  return { run, single, end };
};

const status = (state) => ({ state, message: undefined, timestamp: new Date().toISOString() });

/** Sends as many chunks as the message says. */
const executor = {
  execute: async ({ taskId, contextId, userMessage }, bus) => {
    const chunks = Number(userMessage.parts[0].content.value);
    const named = { taskId, contextId };
    const task = { id: taskId, contextId, status: status(2), artifacts: [], history: [] };
    bus.publish(AgentEvent.task({ ...task, metadata: undefined }));
    const part = { content: { $case: 'text', value: text }, filename: '', mediaType: '' };
    for (let n = 0; n < chunks; n += 1) {
      const artifact = {
        artifactId: 'a',
        name: '',
        description: '',
        parts: [part],
        extensions: [],
      };
      const more = { append: n > 0, lastChunk: false, metadata: undefined };
      bus.publish(AgentEvent.artifactUpdate({ ...named, artifact, ...more }));
    }
    bus.publish(AgentEvent.statusUpdate({ ...named, status: status(3), metadata: undefined }));
    bus.finished();
  },
  cancelTask: async () => {},
};

const theirs = async () => {
  const card = {
    name: 'bench',
    supportedInterfaces: [{ protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    capabilities: { streaming: true, extensions: [] },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [],
  };
  const transport = new JsonRpcTransportHandler(
    new DefaultRequestHandler(card, new InMemoryTaskStore(), executor),
  );
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const piece of request) body += piece;
    const context = new ServerCallContext({ requestedVersion: '1.0' });
    const answer = await transport.handle(body, context);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for await (const event of answer) response.write(`data: ${JSON.stringify(event)}\n\n`);
    response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  const run = (chunks) =>
    timed(() => read(port, 'SendStreamingMessage', send(String(chunks)), chunks, { toEnd: true }));
  return { run, end: async () => server.close() };
};

const [own, sdk] = [await ours(), await theirs()];
const figures = { own: [], sdk: [], few: [], many: [], frames: [], singly: [] };
await own.run();
await sdk.run(20);
for (let round = 0; round < rounds; round += 1) {
  figures.own.push(await own.run());
  figures.sdk.push(await sdk.run(long));
  figures.few.push((await own.single(long / 4)).us);
  const { us, frames, ms } = await own.single(long);
  figures.singly.push(ms);
  figures.many.push(us);
  figures.frames.push(frames);
}
await own.end();
await sdk.end();
const [ran, limit, few, many, frames] = [
  ...[figures.own, figures.sdk, figures.few, figures.many, figures.frames].map(median),
];
report("2,000 chunks of A2A / the SDK's own server", {
  ...{ ours: ran, limit, ratio: ran / limit, goal: 0.1 },
});
const singly = median(figures.singly);
report('  each a durable entry', { ours: singly, limit, ratio: singly / limit });
report('CPU: a chunk of 2,000 / a chunk of 500', {
  ...{ ours: many, limit: few, ratio: many / few, goal: 1.3, unit: 'us' },
});
report('frames of them / chunks', { ours: frames, limit: long, ratio: frames / long, unit: '' });
