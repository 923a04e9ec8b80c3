import { pathToFileURL } from 'node:url';
import { isJsonObject, type JsonObject, parseJson } from '../../machines/json.ts';
import { messageOf } from '../../machines/message-of.ts';
import { McpError } from './port.ts';

interface WaitingCall {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: McpError) => void;
}

interface AddedCall {
  readonly id: number;
  /** Rejects with an McpError. */
  readonly answer: Promise<unknown>;
  readonly giveUp: (why: string) => void;
}

/** Calls that wait for an answer, each for a limited time. */
interface WaitingCalls {
  /** `onGivenUp`: the time is over, or the signal is aborted. */
  add(ms: number, signal: AbortSignal, onGivenUp: (id: number, why: string) => void): AddedCall;
  /** The caller settles it. */
  take(id: number): WaitingCall | undefined;
  rejectAll(why: string): void;
}

const createWaitingCalls = (): WaitingCalls => {
  const waiting = new Map<number, WaitingCall>();
  let lastId = 0;

  const take = (id: number): WaitingCall | undefined => {
    const found = waiting.get(id);
    waiting.delete(id);
    return found;
  };
  return {
    add: (ms, signal, onGivenUp) => {
      lastId += 1;
      const id = lastId;
      const giveUp = (why: string): void => {
        take(id)?.reject(new McpError(why));
        onGivenUp(id, why);
      };
      const onAbort = (): void => giveUp('cancelled');
      const answer = new Promise((resolve, reject) => {
        const timer = setTimeout(() => giveUp(`no answer within ${ms / 1_000} s`), ms);
        const settle = (): void => {
          clearTimeout(timer);
          signal.removeEventListener('abort', onAbort);
        };
        waiting.set(id, {
          resolve: (result) => {
            settle();
            resolve(result);
          },
          reject: (error) => {
            settle();
            reject(error);
          },
        });
        signal.addEventListener('abort', onAbort, { once: true });
      });
      return { id, answer, giveUp };
    },
    take,
    rejectAll: (why) => {
      for (const id of [...waiting.keys()]) take(id)?.reject(new McpError(why));
    },
  };
};

/** The longest message that is read from a server (characters). */
export const maxMessageLength = 4 * 1024 * 1024;

/** Messages that answer nothing: more of them in this time end the connection. */
const unaskedMs = 10_000;
const maxUnasked = 2_000;
const maxUnaskedLength = 16 * 1024 * 1024;

/** What a transport tells the peer. */
export interface PeerInput {
  receive(text: string): void;
  /** A request could not be sent, or got no answer. */
  fail(id: number | null, why: string): void;
  /** Nothing comes any more. */
  closed(why: string): void;
}

export interface Transport {
  /** `id`: of a request that waits for an answer. */
  send(text: string, id: number | null): void;
  /** Nobody waits for the answer of this request any more. */
  drop?(id: number): void;
  close(): Promise<void>;
}

/** One side of a JSON-RPC conversation with a server that may be hostile. */
export interface Peer {
  /** @throws McpError, at the latest after `ms` */
  request(method: string, params: object, ms: number, signal: AbortSignal): Promise<unknown>;
  notify(method: string, params?: object): void;
  /** Why the conversation is over; null while it is not. */
  over(): string | null;
  close(): Promise<void>;
}

/** Counts what a server says unasked. @returns true when it is too much */
const createFloodMeter = () => {
  let [since, count, length] = [0, 0, 0];
  return (text: string): boolean => {
    const now = performance.now();
    if (now - since > unaskedMs) [since, count, length] = [now, 0, 0];
    count += 1;
    length += text.length;
    return count > maxUnasked || length > maxUnaskedLength;
  };
};

const parseMessage = (text: string): JsonObject => {
  const json = parseJson(text);
  return isJsonObject(json) ? json : {};
};

const peerErrorText = (error: unknown): string => {
  const { message } = isJsonObject(error) ? error : {};
  return typeof message === 'string' && message !== ''
    ? message.slice(0, 2_000)
    : 'it gave no reason';
};

/** `roots`: absolute paths of the folders that the server is about. */
export const createPeer = (
  open: (input: PeerInput) => Transport,
  roots: readonly string[] = [],
): Peer => {
  const calls = createWaitingCalls();
  const isFlood = createFloodMeter();
  let ended: string | null = null;

  const closed = (why: string): void => {
    ended ??= why;
    calls.rejectAll(ended);
  };
  const send = (message: object, id: number | null = null): void => {
    if (ended === null) transport.send(JSON.stringify({ jsonrpc: '2.0', ...message }), id);
  };
  const offered: Readonly<Record<string, object>> = {
    ping: {},
    'roots/list': {
      roots: roots.map((path) => ({ uri: pathToFileURL(path).href, name: 'workspace' })),
    },
  };
  /** Answers a request of the server, which may ping us, ask for the roots, and do nothing else. */
  const answerServer = (id: unknown, method: unknown): void => {
    const result = typeof method === 'string' ? offered[method] : undefined;
    send(
      result === undefined
        ? { id, error: { code: -32_601, message: 'this client does not offer it' } }
        : { id, result },
    );
  };
  const receive = (text: string): void => {
    if (ended !== null) return;
    const { id, method, result, error } = parseMessage(text);
    const asked = method === undefined && typeof id === 'number' ? calls.take(id) : undefined;
    if (asked === undefined) {
      if (isFlood(text)) {
        closed('it sends more messages than anybody asked for');
        void transport.close();
      } else if (id !== undefined && method !== undefined) answerServer(id, method);
      return;
    }
    if (error === undefined) asked.resolve(result);
    else asked.reject(new McpError(peerErrorText(error)));
  };
  const transport = open({
    receive,
    fail: (id, why) => {
      if (id !== null) calls.take(id)?.reject(new McpError(why));
    },
    closed,
  });

  const request: Peer['request'] = (method, params, ms, signal) => {
    const { id, answer, giveUp } = calls.add(ms, signal, (late, why) => {
      transport.drop?.(late);
      send({ method: 'notifications/cancelled', params: { requestId: late, reason: why } });
    });
    if (ended !== null) closed(ended);
    else if (signal.aborted) giveUp('cancelled');
    else
      try {
        send({ id, method, params }, id);
      } catch (error) {
        calls.take(id)?.reject(new McpError(messageOf(error)));
      }
    return answer;
  };

  return {
    request,
    notify: (method, params) => send({ method, ...(params === undefined ? {} : { params }) }),
    over: () => ended,
    close: async () => {
      closed('it was closed');
      await transport.close();
    },
  };
};
