import { isJsonObject } from '../../machines/json.ts';
import type { Client, MethodName, Params, Result } from './client.ts';
import {
  type Address,
  connectionLost,
  errorInAnswer,
  readBody,
  type Transport,
} from './transport.ts';

export const callMs = 60_000;
/** Its tests have limits of their own (`merge.timeout_seconds`). */
const mergeMs = 3 * 3_600_000;
/** A thousand tasks in bd take minutes. */
const importMs = 1_800_000;

const waitMs: Readonly<Partial<Record<MethodName, number>>> = {
  merge: mergeMs,
  merge_many: mergeMs,
  import: importMs,
  import_issues: importMs,
};

/** Calls methods of a server over JSON-RPC. */
export const createHttpCall =
  (address: Address, transport: Transport): Client['call'] =>
  async <Name extends MethodName>(method: Name, params: Params<Name>): Promise<Result<Name>> => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    const lost = (cause: unknown) => connectionLost(transport.lostText(address), cause);
    let answer: unknown;
    try {
      const headers = { 'content-type': 'application/json' };
      const idleMs = waitMs[method] ?? callMs;
      const request = { method: 'POST', headers, idleMs, body } as const;
      answer = JSON.parse(await readBody(await transport.send(address, '/a2a/execute', request)));
    } catch (error) {
      throw lost(error);
    }
    const failure = errorInAnswer(answer);
    if (failure !== null) throw failure;
    if (!isJsonObject(answer) || !('result' in answer))
      throw lost(new Error('the answer has no result'));
    // Our own server answers as it describes.
    return answer['result'] as Result<Name>;
  };
