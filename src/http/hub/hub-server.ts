import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { parseJson, textOrEmpty } from '../../machines/json.ts';
import { messageOf } from '../../machines/message-of.ts';
import { errorBody, requestErrors } from '../error-table.ts';
import { answerHeaders, bearerToken } from '../gate.ts';
import { type PageFile, type PageFiles, pageHeaders } from '../page-files.ts';
import { createThrottle, windowMs } from '../people/callers.ts';
import { forward, type Upstream } from './forward.ts';
import { admit, hubOrigin } from './hub-gate.ts';
import type { CodeRefusal, Logins } from './logins.ts';

/** A project as the front page and `agent hub status` show it. */
export interface HubProject {
  readonly slug: string;
  /** Its folder. */
  readonly project: string;
  readonly running: boolean;
  /** Its folder was removed or moved. */
  readonly gone?: true;
}

/** The projects of this person, and their servers. */
export interface HubProjects {
  list(): readonly HubProject[];
  /** Null when there is none of this name. */
  find(slug: string): HubProject | null;
  /** The way to its server for one login; null when it does not run. Rejects when it refuses. */
  upstream(slug: string, loginId: string): Promise<Upstream | null>;
  /** The session of the login is over. */
  forget(slug: string, loginId: string): void;
  /** Starts its server if none runs. @returns why it did not start, or null */
  start(slug: string): Promise<string | null>;
  /** From the list, when its folder is gone. */
  drop(slug: string): boolean;
  /** Ends the sessions that servers gave for these logins. */
  endSessions(loginIds: readonly string[]): Promise<void>;
}

export interface HubOptions {
  readonly port: number;
  readonly logins: Logins;
  readonly projects: HubProjects;
  /** The page of a project, which every server has, too. */
  readonly page: PageFiles;
  /** The front page, and the script that signs in. */
  readonly front: PageFiles;
  /** Called when a code is used. */
  readonly onCodeOver: (code: string) => void;
  readonly onRequest: () => void;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

const urlBytesAtMost = 2 * 1024;
const bodyBytesAtMost = 4 * 1024;

const sendJson = (response: ServerResponse, status: number, body: object): void => {
  const text = JSON.stringify(body);
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
  };
  response.writeHead(status, { ...answerHeaders, ...headers }).end(text);
};

type Refusal = keyof typeof requestErrors;

const refuse = (response: ServerResponse, code: Refusal, message: string, facts = {}): void =>
  sendJson(response, requestErrors[code], errorBody(code, message, facts));

const sendFile = (
  response: ServerResponse,
  file: PageFile | undefined,
  isHashed: boolean,
): void => {
  if (file === undefined) {
    refuse(response, 'not_found', 'no such file');
    return;
  }
  const headers = {
    ...pageHeaders,
    ...(isHashed ? { 'cache-control': 'public, max-age=31536000, immutable' } : {}),
    'content-type': file.type,
    'content-length': file.body.length,
  };
  response.writeHead(200, headers).end(file.body);
};

const redirect = (response: ServerResponse, location: string): void =>
  void response.writeHead(308, { ...answerHeaders, location, 'content-length': 0 }).end();

class BodyError extends Error {
  readonly code: Refusal;

  constructor(code: Refusal, message: string) {
    super(message);
    this.code = code;
  }
}

/** @throws BodyError */
const readJson = async (request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> => {
  if (!/^application\/json\b/.test(request.headers['content-type'] ?? ''))
    throw new BodyError('unsupported_media_type', 'send Content-Type: application/json');
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > bodyBytesAtMost)
      throw new BodyError('payload_too_large', `a request holds at most ${bodyBytesAtMost} bytes`);
    parts.push(part);
  }
  const value = parseJson(Buffer.concat(parts).toString('utf8'));
  if (typeof value !== 'object' || value === null)
    throw new BodyError('invalid_request', 'the body is not a JSON object');
  return { ...value };
};

const whyRefused: Readonly<Record<CodeRefusal, string>> = {
  used: 'That code was used already. Run `agent open` again for a new one.',
  expired: 'That code is too old. Run `agent open` again for a new one.',
  unknown: 'The hub does not know that code. Run `agent open` for a new one.',
};

interface ProjectPath {
  readonly slug: string;
  /** What follows, with the query; empty without a slash. */
  readonly rest: string;
}

const projectPath = (url: string): ProjectPath | null => {
  const [, name, rest = ''] = /^\/p\/([^/?]{1,400})(.*)$/s.exec(url) ?? [];
  if (name === undefined) return null;
  try {
    return { slug: decodeURIComponent(name), rest };
  } catch {
    return null;
  }
};

/** The steps of a sign-in, which need no token. @returns null for another path */
const createSignIn = ({ logins, onCodeOver, log }: HubOptions) => {
  const throttle = createThrottle(() => performance.now());

  const refuseLogin = (request: IncomingMessage, response: ServerResponse, message: string) => {
    const { over, first } = throttle.failed(request.socket.remoteAddress ?? '');
    if (first) log('too many wrong sign-ins; they are throttled', {});
    if (!over) return refuse(response, 'unauthorized', message);
    response.setHeader('retry-after', windowMs / 1_000);
    return refuse(response, 'too_many_failures', 'too many wrong sign-ins; wait a minute');
  };

  const register = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await readJson(request);
    const code = textOrEmpty(body['code']);
    const agent = request.headers['user-agent'] ?? '';
    const made = await logins.register(code, textOrEmpty(body['public_key']), agent);
    if (made in whyRefused) return refuseLogin(request, response, whyRefused[made as CodeRefusal]);
    onCodeOver(code);
    log('a browser signed in', { login: made });
    return sendJson(response, 200, { id: made });
  };

  const signIn = async (request: IncomingMessage, response: ServerResponse) => {
    const { id, nonce, signature } = await readJson(request);
    const signed = {
      id: textOrEmpty(id),
      nonce: textOrEmpty(nonce),
      signature: textOrEmpty(signature),
    };
    const found = await logins.signIn(signed);
    if (found === null)
      return refuseLogin(
        request,
        response,
        'This browser is not signed in any more. Run `agent open` again.',
      );
    const { token, expiresAt } = found;
    return sendJson(response, 200, { token, expires_at: new Date(expiresAt).toISOString() });
  };

  return (request: IncomingMessage, response: ServerResponse): Promise<void> | null => {
    if (request.url === '/hub/nonces')
      return Promise.resolve(sendJson(response, 200, { nonce: logins.createNonce() }));
    if (request.url === '/hub/keys') return register(request, response);
    return request.url === '/hub/tokens' ? signIn(request, response) : null;
  };
};

/** The page and its files, which everybody may read. @returns false for another path */
const createPageRoutes = ({ port, page, front }: HubOptions) => {
  const origin = hubOrigin(port);
  return (
    response: ServerResponse,
    url: string,
    project: ProjectPath | null,
    isPage: boolean,
  ): boolean => {
    const own = url.startsWith('/hub/') ? url.slice('/hub/'.length) : '';
    if (url === '/') sendFile(response, front.get('index.html'), false);
    else if (project?.rest === '') redirect(response, `${origin}${url}/`);
    else if (isPage) sendFile(response, page.get('index.html'), false);
    else if (url.startsWith('/assets/')) sendFile(response, page.get(url.slice(1)), true);
    else if (own.startsWith('assets/')) sendFile(response, front.get(own), true);
    else if (own === 'sign-in.js' || own === 'bar.css') sendFile(response, front.get(own), false);
    else return false;
    return true;
  };
};

/** @returns false when the request was answered already */
const createHubGate =
  ({ port }: HubOptions) =>
  (request: IncomingMessage, response: ServerResponse, isPage: boolean): boolean => {
    const { url = '' } = request;
    const admission = admit(request, port, isPage);
    if (admission.kind === 'elsewhere') redirect(response, `${hubOrigin(port)}${url}`);
    else if (admission.kind === 'refused')
      refuse(response, 'forbidden', `refused by the check of ${admission.check}`, {
        check: admission.check,
      });
    else if (url.length > urlBytesAtMost)
      refuse(response, 'uri_too_long', 'the address of the request is too long');
    else return true;
    return false;
  };

/**
 * What browsers reach. Each request but the page itself and its sign-in needs the token of a tab.
 */
export const createHub = (options: HubOptions) => {
  const { logins, projects, log } = options;
  const passesGate = createHubGate(options);
  const answerPage = createPageRoutes(options);
  const answerSignIn = createSignIn(options);
  /** Answers on their way, by login. */
  const open = new Map<string, Set<ServerResponse>>();

  const end = async (ids: readonly string[]): Promise<void> => {
    for (const id of ids) for (const response of open.get(id) ?? []) response.destroy();
    await projects.endSessions(ids);
  };

  /** The token of the tab may not outlive its answer. */
  const track = (response: ServerResponse, id: string, expiresAt: number): void => {
    const all = open.get(id) ?? new Set();
    open.set(id, all.add(response));
    const timer = setTimeout(() => response.destroy(), Math.max(0, expiresAt - Date.now()));
    timer.unref();
    response.once('close', () => {
      clearTimeout(timer);
      all.delete(response);
      if (all.size === 0) open.delete(id);
    });
  };

  const toProject = async (
    request: IncomingMessage,
    response: ServerResponse,
    { slug, rest }: ProjectPath,
    loginId: string,
  ): Promise<void> => {
    const stopped = errorBody('server_stopped', 'the server of this project does not run');
    const upstream = await projects.upstream(slug, loginId);
    if (upstream === null)
      return projects.find(slug) === null
        ? refuse(response, 'not_found', `the hub knows no project ${slug}`)
        : sendJson(response, 503, stopped);
    // Revoked meanwhile.
    if (response.destroyed) return;
    try {
      const status = await forward(request, response, rest, upstream);
      if (status === requestErrors.unauthorized) projects.forget(slug, loginId);
    } catch {
      if (!response.headersSent && !response.destroyed) sendJson(response, 503, stopped);
    }
  };

  const ownRoute = async (
    request: IncomingMessage,
    response: ServerResponse,
    loginId: string,
  ): Promise<void> => {
    const { method, url = '' } = request;
    if (method === 'GET' && url === '/hub/projects')
      return sendJson(response, 200, { projects: projects.list() });
    if (method === 'DELETE' && url === '/hub/login') {
      await end(await logins.revoke(loginId));
      return void response.writeHead(204, answerHeaders).end();
    }
    const [, name = '', isStart] = /^\/hub\/projects\/([^/?]{1,400})(\/start)?$/.exec(url) ?? [];
    const slug = projectPath(`/p/${name}`)?.slug ?? '';
    if (projects.find(slug) === null)
      return refuse(response, 'not_found', `the hub knows no project ${slug}`);
    if (method === 'POST' && isStart !== undefined) {
      const reason = await projects.start(slug);
      return reason === null
        ? sendJson(response, 200, { running: true })
        : sendJson(response, 503, errorBody('server_not_started', reason));
    }
    if (method === 'DELETE' && isStart === undefined)
      return projects.drop(slug)
        ? void response.writeHead(204, answerHeaders).end()
        : refuse(response, 'forbidden', 'only a project whose folder is gone leaves the list');
    return refuse(response, 'method_not_allowed', `${method} is not for this address`);
  };

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method, url = '' } = request;
    const project = projectPath(url);
    const isPage = url === '/' || (project !== null && /^\/?(\?.*)?$/.test(project.rest));
    if (!passesGate(request, response, isPage)) return;
    if (method === 'GET' && answerPage(response, url, project, isPage)) return;
    const signing = method === 'POST' ? answerSignIn(request, response) : null;
    if (signing !== null) return signing;
    const tab = logins.find(bearerToken({ raw: request }) ?? '');
    if (tab === null)
      return refuse(response, 'unauthorized', 'sign in: this needs the token of a tab');
    track(response, tab.id, tab.expiresAt);
    return project === null
      ? ownRoute(request, response, tab.id)
      : toProject(request, response, project, tab.id);
  };

  const onRequest: RequestListener = (request, response) => {
    options.onRequest();
    handle(request, response).catch((error: unknown) => {
      if (response.headersSent) return void response.destroy();
      if (error instanceof BodyError) return refuse(response, error.code, error.message);
      log('request failed', { error: messageOf(error) });
      return sendJson(
        response,
        502,
        errorBody('internal', 'the hub could not answer; see its log'),
      );
    });
  };
  return { onRequest, end };
};
