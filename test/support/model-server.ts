import { createServer, type IncomingHttpHeaders, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** As chat completions count; responses get it in their own words. */
interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens?: number;
  readonly prompt_tokens_details?: { readonly cached_tokens: number };
}

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
      /** What the model thinks before: over chat in this field, over responses as a sealed item. */
      readonly thought?: { readonly field: string; readonly text: string };
      readonly calls?: readonly { readonly id?: string; readonly name: string; readonly arguments: string }[];
      readonly finish?: string | null;
      readonly usage?: Usage | null;
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
      /** How responses carry it: `nested` as servers do, `flat` as the reference says, or in `failed`, the last event. */
      readonly as?: 'nested' | 'flat' | 'failed';
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

type GivenAnswer = Extract<Answer, { kind: 'answer' }>;
type GivenError = Extract<Answer, { kind: 'error_event' }>;

/** What the two protocols differ in; each frame is written on its own. */
interface Wire {
  readonly frames: (given: GivenAnswer) => readonly string[];
  readonly error: (given: GivenError) => string;
  readonly half: string;
}

const halves = (text: string): readonly [string, string] => {
  const middle = Math.ceil(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)];
};
const pieces = (text: string): readonly string[] => text.match(/.{1,5}/gs) ?? [];
const overloaded = { message: 'overloaded', code: 'server_error', type: 'server_error' };
const counted: Usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };

const chunk = (delta: object, finish: string | null = null) => ({
  id: 'c1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: finish }],
});

const chat: Wire = {
  frames: ({ text = '', calls = [], usage = counted, thought, ...given }) => {
    const finish = given.finish === undefined ? (calls.length > 0 ? 'tool_calls' : 'stop') : given.finish;
    const callChunks = calls.flatMap((call, index) => {
      const id = call.id === undefined ? {} : { id: call.id };
      const part = (fn: object) => chunk({ tool_calls: [{ index, type: 'function', function: fn }] });
      const begun = { index, ...id, type: 'function', function: { name: call.name, arguments: '' } };
      return [chunk({ tool_calls: [begun] }), ...halves(call.arguments).map((half) => part({ arguments: half }))];
    });
    const chunks = [
      chunk({ role: 'assistant', content: '' }),
      ...pieces(thought?.text ?? '').map((piece) => chunk({ [thought?.field ?? '']: piece })),
      ...pieces(text).map((content) => chunk({ content })),
      ...callChunks,
      ...(finish === null ? [] : [chunk({}, finish)]),
      ...(usage === null ? [] : [{ ...chunk({}), choices: [], usage }]),
    ];
    return [...chunks.map(event), ...(finish === null || given.hold === true ? [] : ['data: [DONE]\n\n'])];
  },
  error: ({ error = overloaded }) => event({ error }),
  half: event(chunk({ content: 'half' })),
};

const typed = (type: string, fields: object): string => `event: ${type}\n${event({ ...fields, type })}`;
const textDelta = (delta: string, place = 0): string =>
  typed('response.output_text.delta', { item_id: 'msg_1', output_index: place, content_index: 0, delta });

/** How chat completions call an ending, as responses call it. */
const incompleteReasons: Readonly<Record<string, string>> = { length: 'max_output_tokens' };

const lastResponse = (finish: string, usage: Usage | null) => {
  const counts = usage && {
    input_tokens: usage.prompt_tokens,
    output_tokens: usage.completion_tokens,
    total_tokens: usage.prompt_tokens + usage.completion_tokens,
    input_tokens_details: usage.prompt_tokens_details ?? { cached_tokens: 0 },
  };
  const whole = ['stop', 'tool_calls'].includes(finish);
  return typed(whole ? 'response.completed' : 'response.incomplete', {
    response: {
      id: 'resp_1',
      status: whole ? 'completed' : 'incomplete',
      incomplete_details: whole ? null : { reason: incompleteReasons[finish] ?? finish },
      usage: counts,
    },
  });
};

const responses: Wire = {
  frames: ({ text = '', calls = [], usage = counted, finish = 'stop', thought }) => {
    const textAt = thought === undefined ? 0 : 1;
    const callFrames = calls.flatMap((call, place) => {
      const at = { item_id: `fc_${place}`, output_index: textAt + place + 1 };
      const item = { type: 'function_call', id: at.item_id, call_id: call.id, name: call.name, arguments: '' };
      const whole = { ...item, arguments: call.arguments };
      return [
        typed('response.output_item.added', { output_index: at.output_index, item }),
        ...halves(call.arguments).map((delta) => typed('response.function_call_arguments.delta', { ...at, delta })),
        typed('response.function_call_arguments.done', { ...at, arguments: call.arguments }),
        typed('response.output_item.done', { output_index: at.output_index, item: whole }),
      ];
    });
    const content = [{ type: 'output_text', text, annotations: [] }];
    const message = { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content };
    const reasoning = { type: 'reasoning', id: 'rs_1', summary: [], status: null, encrypted_content: thought?.text };
    return [
      typed('response.created', { response: { id: 'resp_1', status: 'in_progress' } }),
      ...(thought === undefined ? [] : [typed('response.output_item.done', { output_index: 0, item: reasoning })]),
      typed('response.output_item.added', { output_index: textAt, item: { ...message, content: [] } }),
      ...pieces(text).map((delta) => textDelta(delta, textAt)),
      typed('response.output_item.done', { output_index: textAt, item: message }),
      ...callFrames,
      ...(finish === null ? [] : [lastResponse(finish, usage)]),
    ];
  },
  error: ({ error = overloaded, as = 'nested' }) => {
    if (as === 'failed') return typed('response.failed', { response: { id: 'resp_1', status: 'failed', error } });
    return typed('error', as === 'flat' ? error : { error });
  },
  half: textDelta('half'),
};

const wireFor = (path: string): Wire => (path.endsWith('/responses') ? responses : chat);

const faults: Readonly<Record<Fault, (response: ServerResponse, half: string) => void>> = {
  silence: () => {},
  headers_only: sse,
  comments_only: (response) => {
    sse(response);
    const timer = setInterval(() => response.write(': ping\n\n'), 20);
    response.once('close', () => clearInterval(timer));
  },
  stall: (response, half) => {
    sse(response);
    response.write(half);
  },
  reset: (response, half) => {
    sse(response);
    response.write(half, () => response.socket?.resetAndDestroy());
  },
  cut: (response, half) => {
    sse(response);
    response.end(half);
  },
  half_event: (response, half) => {
    sse(response);
    response.end(`${half}data: {"id":"c1","choi`);
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

const answer = (response: ServerResponse, frames: readonly string[], hold: boolean): void => {
  sse(response);
  for (const frame of frames) response.write(frame);
  if (!hold) response.end();
};

const reply = (response: ServerResponse, given: Answer, wire: Wire): void => {
  if (given.kind === 'answer') answer(response, wire.frames(given), given.hold === true);
  else if (given.kind === 'status') {
    response.writeHead(given.status, { 'content-type': 'application/json', ...given.headers });
    const { body = { error: { message: `status ${given.status}` } } } = given;
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  } else if (given.kind === 'error_event') {
    sse(response);
    response.end(wire.error(given));
  } else faults[given.kind](response, wire.half);
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

interface ModelServerOptions {
  readonly answer: (request: SeenRequest, number: number) => Answer;
  /** Key and certificate in PEM; with them it speaks https. */
  readonly tls?: { readonly key: string; readonly cert: string };
}

/**
 * A provider on a free port of 127.0.0.1 that speaks responses at `/responses` and chat completions elsewhere; `answer`
 * gets the request and its number, from 1.
 */
export const createModelServer = async (options: ModelServerOptions): Promise<ModelServer> => {
  const requests: SeenRequest[] = [];
  const serve: RequestListener = (request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (piece) => {
      text += piece;
    });
    request.on('end', () => {
      const seen = { path: request.url ?? '', headers: request.headers, body: JSON.parse(text || '{}') };
      requests.push(seen);
      reply(response, options.answer(seen, requests.length), wireFor(seen.path));
    });
  };
  const server = options.tls === undefined ? createServer(serve) : createTlsServer(options.tls, serve);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `${options.tls === undefined ? 'http' : 'https'}://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { requests, origin, baseURL: `${origin}/v1`, close };
};

/** `createModelServer` for one test: it closes when the test is over. */
export const startModelServer = async (
  answer: ModelServerOptions['answer'],
  options: Omit<ModelServerOptions, 'answer'> = {},
) => {
  const server = await createModelServer({ answer, ...options });
  onTestFinished(server.close);
  return server;
};
