import { existsSync, mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { onTestFinished } from 'vitest';

const version = '2.1.197';

/**
 * The program of `AGENT_TEST_CLAUDE`, else the npm package, installed once into a temporary folder;
 * or the reason why there is none.
 */
export const realClaude = async (): Promise<
  { readonly path: string } | { readonly reason: string }
> => {
  const given = process.env['AGENT_TEST_CLAUDE'];
  if (given !== undefined) return { path: given };
  const folder = join(tmpdir(), `agent-test-claude-${version}`);
  const path = join(folder, 'node_modules', '.bin', 'claude');
  mkdirSync(folder, { recursive: true });
  if (!existsSync(path)) {
    const wanted = `@anthropic-ai/claude-code@${version}`;
    const args = ['install', '--prefix', folder, '--no-audit', '--no-fund', wanted];
    const { exitCode, stderr } = await execa('npm', args, { reject: false, timeout: 240_000 });
    if (exitCode !== 0)
      return { reason: `claude could not be installed: ${stderr.trim().split('\n').at(-1)}` };
  }
  const tried = await execa(path, ['--version'], { reject: false, timeout: 60_000 });
  return tried.exitCode === 0
    ? { path }
    : { reason: `claude does not run here: ${tried.stderr.slice(-300)}` };
};

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

/** One answer for each call that offers tools; other calls, such as for a title, get a text. */
export const startMessagesApi = async (said: readonly ClaudeSays[]) => {
  const asked: string[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const piece of request) body += piece;
    if (request.url?.startsWith('/v1/messages?') !== true && request.url !== '/v1/messages')
      return void response.writeHead(404).end('{}');
    const isWork = body.includes('"name":"Bash"');
    if (isWork) asked.push(body);
    const says = isWork ? (said[asked.length - 1] ?? { text: 'no more' }) : { text: 'A title' };
    response.setHeader('content-type', 'text/event-stream');
    for (const event of eventsOf(says, asked.length)) {
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
