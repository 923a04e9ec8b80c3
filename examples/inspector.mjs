// Shows the machines of a running server in the official XState inspector
// (https://stately.ai/inspect).
//
//   npm install --no-save @statelyai/inspect
//   agent-server --server --inspect
//   node examples/inspector.mjs http://127.0.0.1:8080 "$(agent token)" [port of the page, else
// 8090]
//
// The page of @statelyai/inspect listens on every address of this machine and asks nobody for a
// token: close it after use.
import { createWebSocketInspector } from '@statelyai/inspect';
import { createInspectorServer } from '@statelyai/inspect/server';

const [url, token, port = '8090'] = process.argv.slice(2);
if (url === undefined || token === undefined) {
  console.error('usage: node examples/inspector.mjs <server url> <token> [port]');
  process.exit(2);
}

const page = createInspectorServer({ port: Number(port), autoOpen: false });
const inspector = createWebSocketInspector({ url: `ws://localhost:${port}`, maxDeferredEvents: 10_000 });
console.log(`open http://localhost:${port} in a browser; Ctrl-C ends it`);

const response = await fetch(`${url}/inspect`, { headers: { authorization: `Bearer ${token}` } });
if (!response.ok) {
  console.error(await response.text());
  process.exit(1);
}
// The official inspector knows only these; the server also sends microsteps and actions.
const known = ['@xstate.actor', '@xstate.event', '@xstate.snapshot'];
const show = (message) => {
  if (known.includes(message.type)) inspector.adapter.send(message);
};
let text = '';
for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
  text += chunk;
  const events = text.split('\n\n');
  text = events.pop() ?? '';
  for (const event of events)
    if (event.startsWith('data: ')) show(JSON.parse(event.slice('data: '.length)));
}
inspector.stop();
page.stop();
