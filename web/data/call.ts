import { ask } from './session.ts';
import type { Params } from './source.ts';

/** An error answer of the server. */
export class CallError extends Error {
  override readonly name = 'CallError';
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

interface Answer {
  readonly id?: number;
  readonly result?: unknown;
  readonly error?: { readonly message: string; readonly data?: { readonly code?: string } };
}

const askMs = 60_000;

/** Also for answers outside JSON-RPC. @throws CallError */
export const request = async (path: string, init?: RequestInit): Promise<Response> => {
  try {
    return await ask(path, { signal: AbortSignal.timeout(askMs), ...init });
  } catch {
    throw new CallError('server_lost', 'The server does not answer.');
  }
};

const post = async (body: unknown): Promise<unknown> => {
  const response = await request('a2a/execute', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const answer: unknown = await response.json().catch(() => null);
  if (response.ok) return answer;
  const { error } = (answer ?? {}) as Answer;
  throw new CallError('refused', error?.message ?? `the server answered ${response.status}`);
};

/** What to do about a refusal, where its message does not say that. */
const wayOn: Readonly<Record<string, string>> = {
  dependencies_unmet: ': complete these first, or remove them under Edit',
};

const failureIn = ({ error }: Answer): CallError | null => {
  if (error === undefined) return null;
  const code = error.data?.code ?? 'internal';
  return new CallError(code, `${error.message}${wayOn[code] ?? ''}`);
};

/** @throws CallError */
export const callServer = async (method: string, params: Params): Promise<unknown> => {
  const answer = (await post({ jsonrpc: '2.0', id: 1, method, params })) as Answer;
  const failure = failureIn(answer);
  if (failure !== null) throw failure;
  return answer.result;
};

/** A server takes this many calls in one request. */
export const batchSize = 20;

/** Null for each call that failed. @throws CallError when the request fails */
export const callEach = async <Result>(
  method: string,
  params: readonly Params[],
): Promise<readonly (Result | null)[]> => {
  if (params.length === 0) return [];
  const answers = (await post(
    params.map((each, id) => ({ jsonrpc: '2.0', id, method, params: each })),
  )) as readonly Answer[];
  const byId = new Map(answers.map((answer) => [answer.id, answer]));
  return params.map((_, id) => (byId.get(id)?.result as Result | undefined) ?? null);
};
