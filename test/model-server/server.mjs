// @ts-check
// A provider of models on this machine, for the tests and the demo. It is JavaScript, so that the
// demo runs it from a checkout with every Node that we support.
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { wireFor } from './wires.mjs';

/** @typedef {import('node:http').ServerResponse} ServerResponse */
/** @typedef {import('./answer.ts').Answer} Answer */
/** @typedef {import('./answer.ts').Wire} Wire */

/** @param {ServerResponse} response @param {Wire} wire */
const begin = (response, { contentType = 'text/event-stream' }) => {
  response.writeHead(200, { 'content-type': contentType });
  response.flushHeaders();
};

/**
 * @type {Readonly<Record<import('./answer.ts').Fault, (response: ServerResponse, wire: Wire) =>
 * void>>}
 */
const faults = {
  silence: () => {},
  headers_only: begin,
  comments_only: (response, wire) => {
    begin(response, wire);
    const timer = setInterval(() => response.write(': ping\n\n'), 20);
    response.once('close', () => clearInterval(timer));
  },
  stall: (response, wire) => {
    begin(response, wire);
    response.write(wire.half);
  },
  reset: (response, wire) => {
    begin(response, wire);
    response.write(wire.half, () => response.socket?.resetAndDestroy());
  },
  cut: (response, wire) => {
    begin(response, wire);
    response.end(wire.half);
  },
  half_event: (response, wire) => {
    begin(response, wire);
    response.write(wire.half);
    response.end(wire.halfEvent ?? 'data: {"id":"c1","choi');
  },
  bad_json: (response, wire) => {
    begin(response, wire);
    response.end(wire.noJson ?? 'data: {nonsense}\n\n');
  },
  html: (response) => {
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end('<html>login</html>');
  },
  empty: (response, wire) => {
    begin(response, wire);
    response.end('data: [DONE]\n\n');
  },
};

/** @param {ServerResponse} response @param {import('./answer.ts').GivenAnswer} given @param {Wire} wire */
const answer = (response, given, wire) => {
  begin(response, wire);
  for (const frame of wire.frames(given)) response.write(frame);
  if (given.hold !== true) response.end();
};

/** @param {ServerResponse} response @param {Answer} given @param {Wire} wire */
const reply = (response, given, wire) => {
  if (given.kind === 'answer') answer(response, given, wire);
  else if (given.kind === 'status') {
    response.writeHead(given.status, { 'content-type': 'application/json', ...given.headers });
    const { body = { error: { message: `status ${given.status}` } } } = given;
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  } else if (given.kind === 'error_event') {
    begin(response, wire);
    response.end(wire.error(given));
  } else faults[given.kind](response, wire);
};

/**
 * A provider on a free port of 127.0.0.1 that speaks responses at `/responses`, Messages at `/messages`, the
 * Gemini API at `:streamGenerateContent`, Bedrock at `/converse-stream`, and chat completions elsewhere; `answer` gets the request and its number, from 1.
 * @param {import('./answer.ts').ModelServerOptions} options
 * @returns {Promise<import('./answer.ts').ModelServer>}
 */
export const createModelServer = async (options) => {
  /** @type {import('./answer.ts').SeenRequest[]} */
  const requests = [];
  /** @param {import('./answer.ts').SeenRequest} seen */
  const decide = async (seen) => options.answer(seen, requests.push(seen));
  /** @type {import('node:http').RequestListener} */
  const serve = (request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (piece) => {
      text += piece;
    });
    request.on('end', () => {
      const seen = {
        path: request.url ?? '',
        headers: request.headers,
        body: JSON.parse(text || '{}'),
      };
      decide(seen).then(
        (given) => {
          const wire = wireFor(seen.path);
          const refused = wire.refuses?.(seen) ?? null;
          reply(response, refused === null ? given : { kind: 'status', ...refused }, wire);
        },
        (error) =>
          reply(
            response,
            { kind: 'status', status: 500, body: { error: { message: String(error) } } },
            wireFor(''),
          ),
      );
    });
  };
  const server =
    options.tls === undefined ? createServer(serve) : createTlsServer(options.tls, serve);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const origin = `${options.tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`;
  /** @returns {Promise<void>} */
  const close = () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { requests, origin, baseURL: `${origin}/v1`, close };
};
