import { Agent, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { pipeline } from 'node:stream';
import { answerHeaders } from '../gate.ts';

/** The server of a project, as this hub reaches it. */
export interface Upstream {
  readonly socketPath: string;
  /** What it expects in Host. */
  readonly host: string;
  /** Of the session that it gave the hub for this login. */
  readonly token: string;
}

/** A stream sends something every 15 seconds; a merge may take hours, and sends nothing. */
const silenceMs = 3 * 60 * 60 * 1_000;

/** Shorter than a server keeps a connection that nobody uses (5 s). */
const connections = new Agent({ keepAlive: true, timeout: 3_000 });

/** Nothing else of a browser's request concerns a server: least of all who sent it to whom. */
const sentOn = ['accept', 'content-length', 'content-type', 'last-event-id', 'transfer-encoding'];
const sentBack = ['content-disposition', 'content-length', 'content-type', 'retry-after'];

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;
const picked = (headers: Headers, names: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = headers[name];
      return typeof value === 'string' ? [[name, value]] : [];
    }),
  );

/**
 * Sends a request on, and its answer back as it comes. The end of either side ends the other.
 * @returns the status of the answer. Rejects when the server cannot be reached; then nothing was
 * answered
 */
export const forward = (
  from: IncomingMessage,
  to: ServerResponse,
  path: string,
  { socketPath, host, token }: Upstream,
): Promise<number> =>
  new Promise((resolve, reject) => {
    const { method } = from;
    const headers = {
      ...picked(from.headers, sentOn),
      host,
      authorization: `Bearer ${token}`,
    };
    const where = { socketPath, path, agent: connections };
    const sent = request({ ...where, method, headers, timeout: silenceMs });
    const leave = (): void => void sent.destroy();
    to.once('close', leave);
    sent.once('timeout', leave);
    sent.on('error', (error) => {
      to.off('close', leave);
      if (to.headersSent) to.destroy();
      reject(error);
    });
    sent.once('response', (answer) => {
      const status = answer.statusCode ?? 502;
      to.writeHead(status, { ...answerHeaders, ...picked(answer.headers, sentBack) });
      to.flushHeaders();
      // Each destroys the other when it is cut.
      pipeline(answer, to, () => to.off('close', leave));
      resolve(status);
    });
    from.pipe(sent);
  });
