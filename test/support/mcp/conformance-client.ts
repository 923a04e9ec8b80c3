// The client of the conformance suite: our client lists the tools of a server and calls each once.
import { connectMcp } from '../../../src/actors/mcp/connection.ts';
import { openHttp } from '../../../src/actors/mcp/transports.ts';

const { MCP_CONFORMANCE_CONTEXT: context = '{}' } = process.env;
const url = process.argv.at(-1) ?? '';
const { toolCalls } = JSON.parse(context) as {
  readonly toolCalls?: readonly { readonly name: string; readonly arguments: object }[];
};
const { signal } = new AbortController();

const connection = await connectMcp({
  ...{ server: 'suite', version: '1', startMs: 10_000, signal },
  place: { open: openHttp(url, {}), roots: [], hint: null },
});
const calls =
  toolCalls ?? connection.tools.map(({ tool: name }) => ({ name, arguments: { a: 2, b: 3 } }));
for (const { name, arguments: given } of calls)
  await connection.call(name, given, 10_000, signal).catch(() => {});
await connection.close();
