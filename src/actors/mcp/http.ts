import { messageOf } from '../../machines/message-of.ts';
import { createEventReader } from './event-reader.ts';
import { maxMessageLength, type PeerInput, type Transport } from './peer.ts';
import { type HttpPlace, McpError } from './port.ts';

const goodbyeMs = 1_000;
const shownErrorLength = 300;

/** The server names a session with visible characters. */
const isSession = (text: string | null): text is string =>
  text !== null && /^[\x21-\x7e]{1,256}$/.test(text);

const whyHttpFailed = (error: unknown): string => {
  const { cause } = error instanceof Error ? error : {};
  const words = messageOf(error);
  return cause instanceof Error ? `${words}: ${messageOf(cause)}` : words;
};

/** Fetch would say the value of one that it refuses. @throws McpError */
const checkedHeaders = (given: HttpPlace['headers']): HttpPlace['headers'] =>
  Object.fromEntries(
    Object.entries(given).map(([name, value]) => {
      if (/^[\w-]+$/.test(name) && /^[\t\x20-\x7e]*$/.test(value.trim()))
        return [name, value.trim()];
      throw new McpError(`the header ${name} holds a character that no header may hold`);
    }),
  );

/** The body in pieces; more than a message may have is an error. */
const readAnswerBody = async (response: Response, take: (text: string) => void): Promise<void> => {
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) take(decoder.decode(chunk, { stream: true }));
  take(decoder.decode());
};

const readText = async (response: Response, most: number): Promise<string> => {
  let text = '';
  await readAnswerBody(response, (piece) => {
    text += piece;
    if (text.length > most) throw new McpError(`it answers with more than ${most} characters`);
  });
  return text;
};

const httpRefusal = async (response: Response): Promise<McpError> => {
  const said = (await readText(response, maxMessageLength)).trim().slice(0, shownErrorLength);
  return new McpError(`it answers with status ${response.status}${said === '' ? '' : `: ${said}`}`);
};

/**
 * Speaks Streamable HTTP: each message is a POST, and its answer one message or a stream of them.
 * Follows no redirect, so that no header goes to another place.
 */
export const openHttp =
  (url: string, given: HttpPlace['headers']) =>
  ({ receive, fail, closed }: PeerInput): Transport => {
    const headers = checkedHeaders(given);
    const stop = new AbortController();
    const asking = new Map<number, AbortController>();
    let session: string | null = null;
    let version: string | null = null;

    const ask = (method: 'POST' | 'DELETE', signal: AbortSignal, body?: string) =>
      fetch(url, {
        method,
        redirect: 'error',
        signal,
        headers: {
          ...headers,
          accept: 'application/json, text/event-stream',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(session === null ? {} : { 'mcp-session-id': session }),
          ...(version === null ? {} : { 'mcp-protocol-version': version }),
        },
        ...(body === undefined ? {} : { body }),
      });

    /** Keeps the version that the server agreed to: each further request names it. */
    const take = (text: string): void => {
      version ??= /"protocolVersion"\s*:\s*"([\d-]{1,20})"/.exec(text)?.[1] ?? null;
      receive(text);
    };
    const readMessages = async (response: Response, id: number | null): Promise<void> => {
      const type = response.headers.get('content-type')?.split(';')[0]?.trim() ?? '';
      if (type === 'text/event-stream')
        await readAnswerBody(response, createEventReader(take).push);
      else if (type === 'application/json') take(await readText(response, maxMessageLength));
      else if (id !== null) throw new McpError(`it answers with ${type || 'nothing'}, not JSON`);
      else await response.body?.cancel();
    };
    const readAnswer = async (response: Response, id: number | null): Promise<void> => {
      const given = response.headers.get('mcp-session-id');
      if (isSession(given)) session = given;
      if (response.status === 404 && session !== null) closed('its session is over');
      if (!response.ok) throw await httpRefusal(response);
      await readMessages(response, id);
      // Of an answer that came, nothing waits any more.
      fail(id, 'its answer ends without a result');
    };

    return {
      send: (text, id) => {
        const own = new AbortController();
        if (id !== null) asking.set(id, own);
        ask('POST', AbortSignal.any([stop.signal, own.signal]), text)
          .then((response) => readAnswer(response, id))
          .catch((error: unknown) => fail(id, whyHttpFailed(error)))
          .finally(() => asking.delete(id ?? 0));
      },
      drop: (id) => asking.get(id)?.abort(),
      close: async () => {
        stop.abort();
        if (session === null) return;
        const goodbye = ask('DELETE', AbortSignal.timeout(goodbyeMs));
        await goodbye.then((response) => response.body?.cancel()).catch(() => {});
        session = null;
      },
    };
  };
