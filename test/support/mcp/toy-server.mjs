// An MCP server without packages. Its tool `look` says where it runs, which roots it got and what
// it reaches: `node toy-server.mjs reach <port>` prints the last alone.
import { readdirSync } from 'node:fs';
import { get } from 'node:http';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';

/** `whole`: the machine's port is reached; `listed`: only through a proxy; `none`. */
const reach = async (port) => {
  const isOpen = await new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
      .on('connect', () => resolve(true))
      .on('error', () => resolve(false));
    socket.on('connect', () => socket.destroy());
  });
  if (isOpen) return 'whole';
  if (process.env.http_proxy === undefined) return 'none';
  const proxy = new URL(process.env.http_proxy);
  return new Promise((resolve) => {
    get({ host: proxy.hostname, port: proxy.port, path: `http://127.0.0.1:${port}/`, agent: false })
      .on('response', ({ statusCode }) => resolve(statusCode === 200 ? 'listed' : 'none'))
      .on('error', () => resolve('none'));
  });
};

const [what, port] = process.argv.slice(2);
if (what === 'reach') {
  process.stdout.write(`${await reach(Number(port))}\n`);
  process.exit();
}

const say = (message) =>
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const asked = new Map();
const tool = { name: 'look', description: 'Looks around.', inputSchema: { type: 'object' } };
const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'toy', version: '1' },
  }),
  'tools/list': () => ({ tools: [tool] }),
  'tools/call': async () => {
    const roots = await new Promise((resolve) => {
      asked.set('roots', resolve);
      say({ id: 'roots', method: 'roots/list' });
    });
    const seen = {
      cwd: process.cwd(),
      files: readdirSync('.'),
      workspace: process.env.AGENT_WORKSPACE,
      program: process.argv.slice(1),
      roots: roots.roots,
      reaches: await reach(Number(process.env.TOY_PORT ?? 1)),
    };
    return { content: [{ type: 'text', text: JSON.stringify(seen) }] };
  },
};
createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, method, params, result } = JSON.parse(line);
  if (method === undefined) asked.get(id)?.(result);
  else if (id !== undefined) say({ id, result: await answers[method](params) });
});
