import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { CodeRefusal } from '../actors/store/postgres/login-rows.ts';
import { errorBody, requestErrors } from './error-table.ts';
import { bearerToken } from './gate.ts';
import { addPageFiles, type PageFiles } from './page-files.ts';
import { loginTimes, type PageSessions } from './page-sessions.ts';
import { createThrottle, windowMs } from './throttle.ts';
import { parseParams } from './wire.ts';

export interface PageRouteOptions {
  /** Files of the built page; empty when it is not built. */
  readonly page: PageFiles;
  readonly sessions: PageSessions;
  /** Ends the streams of the session. */
  readonly onLogout: () => void;
  /** Called when a code is used or too old. */
  readonly onCodeOver: (code: string) => void;
  /** The name of the project's folder. */
  readonly projectName: string;
  readonly version: string;
}

const codeSchema = z.strictObject({ code: z.string().min(1).max(256) });
/** In bytes. */
const codeBodyLimit = 1024;

const whyRefused: Readonly<Record<CodeRefusal, string>> = {
  used: 'That code was used already. Run `agent open` again for a new one.',
  expired: 'That code is too old. Run `agent open` again for a new one.',
  unknown: 'The server does not know that code. Run `agent open` for a new one.',
};

const jsonBody = ({ body }: FastifyRequest): unknown => {
  try {
    return JSON.parse(typeof body === 'string' ? body : '');
  } catch {
    return null;
  }
};

const refuseCode = (reply: FastifyReply, refused: CodeRefusal, over: boolean): FastifyReply =>
  over
    ? reply
        .code(requestErrors.too_many_failures)
        .header('retry-after', windowMs / 1_000)
        .send(errorBody('too_many_failures', 'too many wrong codes; wait a minute'))
    : reply
        .code(requestErrors.unauthorized)
        .send(errorBody('unauthorized', whyRefused[refused], { code_refused: refused }));

/**
 * The web page and its login: `agent open` asks for a code with the token of the server, the page
 * exchanges it for the token of a session.
 */
export const addPageRoutes = (app: FastifyInstance, options: PageRouteOptions): void => {
  const { page, sessions, onLogout, onCodeOver, projectName, version } = options;
  const throttle = createThrottle(() => performance.now());
  const startedAt = new Date().toISOString();
  addPageFiles(app, page);
  app.post('/page/codes', { bodyLimit: codeBodyLimit }, async () => {
    const { code, expiresAt } = await sessions.createCode();
    setTimeout(() => onCodeOver(code), loginTimes.codeMs).unref();
    return { code, expires_at: new Date(expiresAt).toISOString() };
  });
  app.post('/page/session', { bodyLimit: codeBodyLimit }, async (request, reply) => {
    const { code } = parseParams(codeSchema, jsonBody(request));
    const session = await sessions.exchange(code);
    if ('refused' in session)
      return refuseCode(reply, session.refused, throttle.failed(request.ip).over);
    onCodeOver(code);
    return { token: session.token, expires_at: new Date(session.expiresAt).toISOString() };
  });
  app.get('/page/session', async (request) => {
    const found = await sessions.find(bearerToken(request) ?? '');
    return {
      project: projectName,
      version,
      started_at: startedAt,
      ...(found === null ? {} : { expires_at: new Date(found.expiresAt).toISOString() }),
    };
  });
  app.delete('/page/session', async (request, reply) => {
    await sessions.end(bearerToken(request) ?? '');
    onLogout();
    return reply.code(204).send();
  });
};
