import { z } from 'zod';
import { isTransient, parseJsonLine } from '../program.ts';

export interface RpcPorts {
  readonly send: (line: string) => void;
  /** Null for an unknown method. */
  readonly onRequest: (method: string, params: unknown) => Promise<unknown> | null;
  readonly onNotification: (method: string, params: unknown) => void;
}

/** One side of JSON-RPC 2.0, a message on each line. */
export interface Rpc {
  /** `timeoutMs` null: no limit. @throws RpcError */
  call(method: string, params: unknown, timeoutMs: number | null): Promise<unknown>;
  notify(method: string, params: unknown): void;
  /** Never throws. Ignores what is not a message, and answers that nobody waits for. */
  receive(line: string): void;
  /** Rejects the calls that wait. */
  close(reason: string): void;
}

export class RpcError extends Error {
  override readonly name = 'RpcError';
  /** True when another try may succeed. */
  readonly isTemporary: boolean;
  constructor(message: string, isTemporary: boolean) {
    super(message);
    this.isTemporary = isTemporary;
  }
}

/** Open requests of the other side; more are refused. */
const mostRequests = 64;
const rpcErrorCodes = { methodNotFound: -32_601, internal: -32_603, busy: -32_000 };

const rpcIdSchema = z.union([z.string().max(1_000), z.number()]);
const rpcErrorSchema = z.looseObject({
  code: z.number().optional(),
  message: z.string().default(''),
  data: z.unknown().optional(),
});
const rpcMessageSchema = z.looseObject({
  id: rpcIdSchema.nullish(),
  method: z.string().optional(),
  params: z.unknown().optional(),
  result: z.unknown().optional(),
  error: rpcErrorSchema.optional(),
});
type RpcMessage = z.infer<typeof rpcMessageSchema>;

const detailsSchema = z.union([
  z.string(),
  z.looseObject({ details: z.string() }).transform(({ details }) => details),
  z.looseObject({ message: z.string() }).transform(({ message }) => message),
]);
const rpcErrorText = ({ message, data }: z.infer<typeof rpcErrorSchema>): string => {
  const details = detailsSchema.safeParse(data).data;
  const said = message.trim() === '' ? 'it gave no reason' : message;
  return details === undefined || said.includes(details) ? said : `${said}: ${details}`;
};

/** Some agents pass the HTTP status of the provider on. */
const rpcFailure = (error: z.infer<typeof rpcErrorSchema>): RpcError => {
  const { code = 0 } = error;
  const message = rpcErrorText(error);
  return new RpcError(message, code === 429 || (code >= 500 && code < 600) || isTransient(message));
};

interface WaitingRequest {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: RpcError) => void;
}

export const createAcpRpc = ({ send, onRequest, onNotification }: RpcPorts): Rpc => {
  const waiting = new Map<number, WaitingRequest>();
  let lastId = 0;
  let openRequests = 0;
  let closed: string | null = null;
  const write = (message: object): void => send(JSON.stringify({ jsonrpc: '2.0', ...message }));

  const settle = ({ id, result, error }: RpcMessage): void => {
    const call = typeof id === 'number' ? waiting.get(id) : undefined;
    if (call === undefined) return;
    waiting.delete(id as number);
    if (error === undefined) call.resolve(result);
    else call.reject(rpcFailure(error));
  };
  const answer = async (id: string | number, method: string, params: unknown): Promise<void> => {
    const refuse = (code: number, message: string) => write({ id, error: { code, message } });
    if (openRequests >= mostRequests) return refuse(rpcErrorCodes.busy, 'too many open requests');
    const answered = onRequest(method, params);
    if (answered === null) return refuse(rpcErrorCodes.methodNotFound, 'method not found');
    openRequests += 1;
    try {
      write({ id, result: await answered });
    } catch {
      refuse(rpcErrorCodes.internal, 'the request failed');
    } finally {
      openRequests -= 1;
    }
  };

  return {
    call: (method, params, timeoutMs) =>
      new Promise((resolve, reject) => {
        if (closed !== null) return reject(new RpcError(closed, false));
        const id = ++lastId;
        const late = (): void => {
          waiting.delete(id);
          const limit = `${(timeoutMs ?? 0) / 1_000} s`;
          reject(new RpcError(`it did not answer ${method} within ${limit}`, true));
        };
        const timer = timeoutMs === null ? undefined : setTimeout(late, timeoutMs);
        const ended =
          <Value>(end: (value: Value) => void) =>
          (value: Value): void => {
            clearTimeout(timer);
            end(value);
          };
        waiting.set(id, { resolve: ended(resolve), reject: ended(reject) });
        write({ id, method, params });
      }),
    notify: (method, params) => write({ method, params }),
    receive: (line) => {
      const message = rpcMessageSchema.safeParse(parseJsonLine(line)).data;
      if (message === undefined) return;
      const { id, method, params } = message;
      if (method === undefined) settle(message);
      else if (id == null) onNotification(method, params);
      else void answer(id, method, params);
    },
    close: (reason) => {
      closed ??= reason;
      for (const call of waiting.values()) call.reject(new RpcError(closed, false));
      waiting.clear();
    },
  };
};
