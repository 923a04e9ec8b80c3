import type { IncomingMessage, ServerResponse } from 'node:http';

/** What goes wrong with the next request that matches, or with so many. */
export interface Fault {
  /** Of `GET /repos/acme/shop/pulls/1` */
  readonly match: RegExp;
  /** How often; default once. */
  readonly times?: number;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Text: as it is. */
  readonly body?: unknown;
  /** `lost`: carried out, and the connection is cut before the answer; `cut`: not carried out. */
  readonly connection?: 'lost' | 'cut' | 'silent';
}

export const createFaults = () => {
  let taken = 0;
  const waiting: { fault: Fault; left: number }[] = [];
  return {
    next: (fault: Fault): void => void waiting.push({ fault, left: fault.times ?? 1 }),
    taken: (): number => taken,
    take: (what: string): Fault | null => {
      const found = waiting.find(({ fault, left }) => left > 0 && fault.match.test(what));
      if (found === undefined) return null;
      found.left -= 1;
      taken += 1;
      return found.fault;
    },
  };
};

/** @returns true when the request has its answer, or none */
export const carryOut = (
  fault: Fault | null,
  request: IncomingMessage,
  response: ServerResponse,
): boolean => {
  if (fault === null || fault.connection === 'lost') return false;
  if (fault.connection === 'cut') request.socket.destroy();
  if (fault.connection !== undefined) return true;
  const { status = 500, headers = {}, body = { message: 'Server Error' } } = fault;
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text);
  return true;
};
