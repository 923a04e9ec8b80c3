import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { errorBody } from '../../http/error-table.ts';
import { codeMs, type Logins } from '../../http/hub/logins.ts';

export interface HubStatus {
  readonly version: string;
  readonly pid: number;
  readonly url: string;
  /** RFC 3339. */
  readonly started_at: string;
}

export interface ControlOptions {
  readonly status: HubStatus;
  readonly logins: Logins;
  readonly onRevoked: (ids: readonly string[]) => Promise<void>;
  readonly onCodeOver: (code: string) => void;
  readonly onStop: () => void;
}

const send = (response: ServerResponse, body: object, status = 200): void =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));

/**
 * What the commands of this person ask over the socket in the private folder of the hub: whoever
 * reaches it may read the tokens of the servers, too.
 */
export const createControl = ({
  status,
  logins,
  onRevoked,
  onCodeOver,
  onStop,
}: ControlOptions): RequestListener => {
  const answer = async ({ method, url = '' }: IncomingMessage, response: ServerResponse) => {
    const asked = `${method} ${url}`;
    if (asked === 'GET /status') return send(response, status);
    if (asked === 'GET /sessions') return send(response, { sessions: logins.list() });
    if (asked === 'POST /codes') {
      const { code, expiresAt } = logins.createCode();
      setTimeout(() => onCodeOver(code), codeMs).unref();
      const expires = new Date(expiresAt).toISOString();
      return send(response, { code, url: status.url, expires_at: expires });
    }
    if (asked === 'POST /stop') {
      response.once('close', onStop);
      return send(response, status);
    }
    const [, id] = /^POST \/revoke(?:\/([0-9a-f]{1,40}))?$/.exec(asked) ?? [];
    if (!asked.startsWith('POST /revoke'))
      return send(response, errorBody('not_found', `no answer to ${asked}`), 404);
    const ids = await logins.revoke(id ?? null);
    await onRevoked(ids);
    return send(response, { revoked: ids });
  };
  return (request, response) => {
    answer(request, response).catch(() =>
      send(response, errorBody('internal', 'the hub could not do it; see its log'), 500),
    );
  };
};
