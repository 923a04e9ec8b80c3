import { createServer, type ServerResponse } from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { AnySchema } from '@modelcontextprotocol/sdk/server/zod-compat.js';
import {
  CreateMessageResultSchema,
  ElicitResultSchema,
  ListRootsResultSchema,
  type ServerRequest,
} from '@modelcontextprotocol/sdk/types.js';
import { expect, onTestFinished, test, vi } from 'vitest';
import { connectMcp } from '../../../src/actors/mcp/connection.ts';
import { openHttp } from '../../../src/actors/mcp/transports.ts';

const { signal } = new AbortController();

const requestedSchema = { type: 'object' as const, properties: {} };
const questions = [
  [
    { method: 'elicitation/create', params: { message: 'Who are you?', requestedSchema } },
    ElicitResultSchema,
  ],
  [
    { method: 'sampling/createMessage', params: { messages: [], maxTokens: 10 } },
    CreateMessageResultSchema,
  ],
  [{ method: 'roots/list', params: {} }, ListRootsResultSchema],
] satisfies [ServerRequest, AnySchema][];

/** An official server whose tool `ask` asks its client, and answers with what it was answered. */
const serveQuestions = async (stream: string) => {
  let ownStream: ServerResponse | null = null;
  const server = new McpServer({ name: 'asks', version: '1' });
  server.registerTool('ask', {}, async ({ sendRequest }) => {
    const send: typeof sendRequest =
      stream === 'its own' ? (...given) => server.server.request(...given) : sendRequest;
    const answers = questions.map(([request, schema]) =>
      send(request, schema).catch(({ code }) => ({ code })),
    );
    const text = JSON.stringify(await Promise.all(answers));
    return { content: [{ type: 'text', text }] };
  });
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => crypto.randomUUID(),
  });
  await server.connect(transport);
  const http = createServer(async (request, response) => {
    if (request.method === 'GET') ownStream = response;
    await transport.handleRequest(request, response);
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    http.closeAllConnections();
    http.close();
  });
  const address = http.address();
  const hasStream = () => ownStream?.headersSent === true;
  return {
    hasStream,
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/mcp`,
  };
};

test.each(['its own', 'the one of the call'])(
  'what a server asks on a stream (%s) is answered at once without a person, and its call ends well',
  async (stream) => {
    const { url, hasStream } = await serveQuestions(stream);
    const connection = await connectMcp({
      ...{ server: 'far', version: '0', startMs: 10_000, signal },
      place: { open: openHttp(url, {}), roots: [], hint: null },
    });
    onTestFinished(() => connection.close());
    await vi.waitFor(() => expect(hasStream()).toBe(true));

    const { ok, text } = await connection.call('ask', {}, 10_000, signal);

    expect(ok).toBe(true);
    expect(JSON.parse(text)).toEqual([{ action: 'decline' }, { code: -32_601 }, { roots: [] }]);
  },
);
