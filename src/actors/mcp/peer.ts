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
  fail(id: number | null, why: string | McpError): void;
  /** Nothing comes any more. */
  closed(why: string): void;
}

export interface Transport {
  readonly isProgram: boolean;
  /** `id`: of a request that waits for an answer. `headers`: for HTTP. */
  send(text: string, id: number | null, headers?: Readonly<Record<string, string>>): void;
  /** Opens the server's own stream of requests and notifications, where it has one. */
  listen?(): void;
  /** Nobody waits for the answer of this request any more, or it came. */
  drop?(id: number): void;
  close(): Promise<void>;
}

/** One side of a JSON-RPC conversation with a server that may be hostile. */
export interface Peer {
  /** @throws McpError, at the latest after `ms` */
  request(
    method: string,
    params: object,
    ms: number,
    signal: AbortSignal,
    headers?: Readonly<Record<string, string>>,
  ): Promise<unknown>;
  readonly isProgram: boolean;
  /** The answers to the requests of a server that this client answers. */
  readonly offered: Readonly<Record<string, object>>;
  notify(method: string, params?: object): void;
  listen(): void;
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

export const peerError = (error: unknown, status?: number): McpError => {
  const { message, code, data } = isJsonObject(error) ? error : {};
  const text =
    typeof message === 'string' && message !== '' ? message.slice(0, 2_000) : 'it gave no reason';
  return new McpError(text, { code: typeof code === 'number' ? code : undefined, data, status });
};

export interface PeerOptions {
  /** Absolute paths of the folders that the server is about. */
  readonly roots?: readonly string[];
  readonly onNotification?: (method: string) => void;
}

export const createPeer = (
  open: (input: PeerInput) => Transport,
  { roots = [], onNotification = () => {} }: PeerOptions = {},
): Peer => {
  const calls = createWaitingCalls();
  const isFlood = createFloodMeter();
  let ended: string | null = null;

  const closed = (why: string): void => {
    ended ??= why;
    calls.rejectAll(ended);
  };
  const send = (
    message: object,
    id: number | null = null,
    headers?: Readonly<Record<string, string>>,
  ): void => {
    if (ended === null) transport.send(JSON.stringify({ jsonrpc: '2.0', ...message }), id, headers);
  };
  const offered: Readonly<Record<string, object>> = {
    ping: {},
    // Nobody is there who could answer; a refusal lets the tool go on at once.
    'elicitation/create': { action: 'decline' },
    'roots/list': {
      roots: roots.map((path) => ({ uri: pathToFileURL(path).href, name: 'workspace' })),
    },
  };
  /** Answers a request of the server. */
  const answerServer = (id: unknown, method: unknown): void => {
    const result =
      typeof method === 'string' && Object.hasOwn(offered, method) ? offered[method] : undefined;
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
      else if (typeof method === 'string') onNotification(method);
      return;
    }
    // Nothing of its stream is waited for any more: a further cut of it is not repaired.
    if (typeof id === 'number') transport.drop?.(id);
    if (error === undefined) asked.resolve(result);
    else asked.reject(peerError(error));
  };
  const transport = open({
    receive,
    fail: (id, why) => {
      if (id === null) return;
      calls.take(id)?.reject(typeof why === 'string' ? new McpError(why) : why);
    },
    closed,
  });

  const request: Peer['request'] = (method, params, ms, signal, headers) => {
    const { id, answer, giveUp } = calls.add(ms, signal, (late, why) => {
      transport.drop?.(late);
      send({ method: 'notifications/cancelled', params: { requestId: late, reason: why } });
    });
    if (ended !== null) closed(ended);
    else if (signal.aborted) giveUp('cancelled');
    else
      try {
        send({ id, method, params }, id, headers);
      } catch (error) {
        calls.take(id)?.reject(new McpError(messageOf(error)));
      }
    return answer;
  };

  return {
    request,
    isProgram: transport.isProgram,
    offered,
    listen: () => transport.listen?.(),
    notify: (method, params) => send({ method, ...(params === undefined ? {} : { params }) }),
    over: () => ended,
    close: async () => {
      closed('it was closed');
      await transport.close();
    },
  };
};
