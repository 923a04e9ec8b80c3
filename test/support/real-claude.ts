import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { npmProgram } from './npm-program.ts';

export const realClaude = () => npmProgram('claude', '@anthropic-ai/claude-code@2.1.197');

export interface ClaudeSays {
  readonly text?: string;
  readonly call?: { readonly name: string; readonly input: object };
}

/** The events of one streamed answer of the Messages API. */
const eventsOf = ({ text, call }: ClaudeSays, number: number): readonly object[] => {
  const usage = { input_tokens: 11, output_tokens: 7 };
  const message = { id: `msg_${number}`, type: 'message', role: 'assistant', model: 'scripted' };
  const [block, delta] =
    call === undefined
      ? [
          { type: 'text', text: '' },
          { type: 'text_delta', text },
        ]
      : [
          { type: 'tool_use', id: `toolu_${number}`, name: call.name, input: {} },
          { type: 'input_json_delta', partial_json: JSON.stringify(call.input) },
        ];
  const stop_reason = call === undefined ? 'end_turn' : 'tool_use';
  return [
    { type: 'message_start', message: { ...message, content: [], stop_reason: null, usage } },
    { type: 'content_block_start', index: 0, content_block: block },
    { type: 'content_block_delta', index: 0, delta },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage },
    { type: 'message_stop' },
  ];
};

const waiting = 'WaitForMcpServers';
/** Claude begins before its MCP servers have told their tools, and offers a tool to wait for them. */
const isEarly = (body: string, { call }: ClaudeSays): boolean =>
  call !== undefined && body.includes(`"name":"${waiting}"`) && !body.includes(`"${call.name}"`);

/** One answer for each call that offers tools; other calls, such as for a title, get a text. */
export const startMessagesApi = async (said: readonly ClaudeSays[]) => {
  const asked: string[] = [];
  let number = 0;
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const piece of request) body += piece;
    if (request.url?.startsWith('/v1/messages?') !== true && request.url !== '/v1/messages')
      return void response.writeHead(404).end('{}');
    const isWork = body.includes('"name":"Bash"');
    const next = said[asked.length] ?? { text: 'no more' };
    const waits = isWork && isEarly(body, next);
    if (isWork && !waits) asked.push(body);
    const says = waits
      ? { call: { name: waiting, input: {} } }
      : isWork
        ? next
        : { text: 'A title' };
    number += 1;
    response.setHeader('content-type', 'text/event-stream');
    for (const event of eventsOf(says, number)) {
      const { type } = event as { readonly type: string };
      response.write(`event: ${type}\ndata: ${JSON.stringify(event)}\n\n`);
    }
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { baseURL: `http://127.0.0.1:${port}`, asked };
};
