import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/**
 * What the scripted provider does with a request. `answer` streams text, calls, finish reason and usage; `finish: null`
 * and `usage: null` leave theirs out. `status` answers without a stream. The rest are faults, in the order of the list
 * in facts/security-reliability 7: `silence` sends nothing at all, `headers_only` no byte after the headers,
 * `comments_only` keep-alives and no answer. `stall`, `reset` (RST), `cut` (clean end) and `half_event` come after a
 * first piece. `bad_json` and `error_event` are pieces of a stream, `html` is a 200 that is none, `empty` has no piece.
 */
export type Answer =
  | {
      readonly kind: 'answer';
      readonly text?: string;
      readonly calls?: readonly { readonly id?: string; readonly name: string; readonly arguments: string }[];
      readonly finish?: string | null;
      readonly usage?: object | null;
      /** Keeps the socket open after the last chunk. */
      readonly hold?: boolean;
    }
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly headers?: Record<string, string>;
      /** Sent as JSON; a string is sent as it is. */
      readonly body?: unknown;
    }
  | {
      readonly kind: 'error_event';
      readonly error?: Readonly<Record<string, unknown>>;
    }
  | {
      readonly kind:
        | 'silence'
        | 'headers_only'
        | 'comments_only'
        | 'stall'
        | 'reset'
        | 'cut'
        | 'half_event'
        | 'bad_json'
        | 'html'
        | 'empty';
    };

type Fault = Exclude<Answer['kind'], 'answer' | 'status' | 'error_event'>;

export interface SeenRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readonly<Record<string, unknown>>;
}

const sse = (response: ServerResponse): void => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.flushHeaders();
};
const event = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;
const chunk = (delta: object, finish: string | null = null) => ({
  id: 'c1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: finish }],
});

const answer = (response: ServerResponse, given: Extract<Answer, { kind: 'answer' }>): void => {
  const { text = '', calls = [], usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 } } = given;
  const finish = given.finish === undefined ? (calls.length > 0 ? 'tool_calls' : 'stop') : given.finish;
  sse(response);
  response.write(event(chunk({ role: 'assistant', content: '' })));
  for (const piece of text.match(/.{1,5}/gs) ?? []) response.write(event(chunk({ content: piece })));
  for (const [index, call] of calls.entries()) {
    const id = call.id === undefined ? {} : { id: call.id };
    const half = Math.ceil(call.arguments.length / 2);
    const part = (fn: object) => chunk({ tool_calls: [{ index, type: 'function', function: fn }] });
    response.write(
      event(chunk({ tool_calls: [{ index, ...id, type: 'function', function: { name: call.name, arguments: '' } }] })),
    );
    response.write(event(part({ arguments: call.arguments.slice(0, half) })));
    response.write(event(part({ arguments: call.arguments.slice(half) })));
  }
  if (finish !== null) response.write(event(chunk({}, finish)));
  if (usage !== null) response.write(event({ ...chunk({}), choices: [], usage }));
  if (given.hold === true) return;
  if (finish !== null) response.write('data: [DONE]\n\n');
  response.end();
};

const faults: Readonly<Record<Fault, (response: ServerResponse) => void>> = {
  silence: () => {},
  headers_only: sse,
  comments_only: (response) => {
    sse(response);
    const timer = setInterval(() => response.write(': ping\n\n'), 20);
    response.once('close', () => clearInterval(timer));
  },
  stall: (response) => {
    sse(response);
    response.write(event(chunk({ content: 'half' })));
  },
  reset: (response) => {
    sse(response);
    response.write(event(chunk({ content: 'half' })), () => response.socket?.resetAndDestroy());
  },
  cut: (response) => {
    sse(response);
    response.end(event(chunk({ content: 'half' })));
  },
  half_event: (response) => {
    sse(response);
    response.end(`${event(chunk({ content: 'half' }))}data: {"id":"c1","choi`);
  },
  bad_json: (response) => {
    sse(response);
    response.end('data: {nonsense}\n\n');
  },
  html: (response) => {
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end('<html>login</html>');
  },
  empty: (response) => {
    sse(response);
    response.end('data: [DONE]\n\n');
  },
};

const reply = (response: ServerResponse, given: Answer): void => {
  if (given.kind === 'answer') answer(response, given);
  else if (given.kind === 'status') {
    response.writeHead(given.status, { 'content-type': 'application/json', ...given.headers });
    const { body = { error: { message: `status ${given.status}` } } } = given;
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  } else if (given.kind === 'error_event') {
    sse(response);
    response.end(
      event({ error: given.error ?? { message: 'overloaded', code: 'server_error', type: 'server_error' } }),
    );
  } else faults[given.kind](response);
};

export interface ModelServer {
  /** Every request so far, oldest first. */
  readonly requests: readonly SeenRequest[];
  readonly origin: string;
  /** `origin` with `/v1`; any other path is served the same. */
  readonly baseURL: string;
  /** Closes every socket, hanging ones too. */
  close(): Promise<void>;
}

/** A provider on a free port of 127.0.0.1 that speaks chat completions; `answer` gets the request and its number, from 1. */
export const createModelServer = async (options: {
  readonly answer: (request: SeenRequest, number: number) => Answer;
}): Promise<ModelServer> => {
  const requests: SeenRequest[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (piece) => {
      text += piece;
    });
    request.on('end', () => {
      const seen = { path: request.url ?? '', headers: request.headers, body: JSON.parse(text || '{}') };
      requests.push(seen);
      reply(response, options.answer(seen, requests.length));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { requests, origin, baseURL: `${origin}/v1`, close };
};

/** `createModelServer` for one test: it closes when the test is over. */
export const startModelServer = async (answer: (request: SeenRequest, number: number) => Answer) => {
  const server = await createModelServer({ answer });
  onTestFinished(server.close);
  return server;
};
