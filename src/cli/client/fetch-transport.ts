import type { HttpAnswer, HttpRequest, Transport } from './transport.ts';

/** Aborts when nothing came for some time, or with the signal of who asked. */
const createPatience = ({ idleMs, signal }: HttpRequest) => {
  const stop = new AbortController();
  const abort = (): void => stop.abort(signal?.reason);
  const giveUp = (): void => stop.abort(new Error(`no answer within ${idleMs / 1000} s`));
  let timer = setTimeout(giveUp, idleMs);
  if (signal?.aborted === true) abort();
  signal?.addEventListener('abort', abort);
  return {
    signal: stop.signal,
    renew: (): void => {
      clearTimeout(timer);
      timer = setTimeout(giveUp, idleMs);
    },
    end: (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    },
  };
};

/** Not every browser iterates over a stream. */
async function* partsOf(
  stream: ReadableStream<Uint8Array> | null,
  { renew, end }: ReturnType<typeof createPatience>,
): AsyncGenerator<Uint8Array, void> {
  const reader = stream?.getReader();
  try {
    for (;;) {
      const part = await reader?.read();
      if (part?.value === undefined) return;
      renew();
      yield part.value;
    }
  } finally {
    end();
    // It fails where the connection is cut.
    reader?.cancel().catch(() => {});
  }
}

const send = async (
  { url, token }: { readonly url: string; readonly token: string },
  path: string,
  request: HttpRequest,
): Promise<HttpAnswer> => {
  const { method, headers, body } = request;
  const patience = createPatience(request);
  try {
    const answer = await fetch(new URL(path.slice(1), url.endsWith('/') ? url : `${url}/`), {
      method,
      headers: { ...headers, ...(token === '' ? {} : { authorization: `Bearer ${token}` }) },
      body,
      signal: patience.signal,
      // The token is for this server alone.
      redirect: 'error',
      credentials: 'omit',
    });
    patience.renew();
    return { status: answer.status, body: partsOf(answer.body, patience) };
  } catch (error) {
    patience.end();
    throw error;
  }
};

/** With the fetch of the runtime: Node, Deno, Bun and browsers. */
export const fetchTransport: Transport = {
  send,
  lostText: ({ url }) =>
    `no answer from the server at ${url}; start it with 'agent server start', or with openProject of 'agent-task-server/client/node'`,
};
