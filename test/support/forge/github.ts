import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { answerGit } from '../git-http.ts';
import { carryOut, createFaults } from './faults.ts';
import { mergePull, notFound, type Route, routes } from './routes.ts';
import { isGitAllowed, listen, read, send } from './serving.ts';
import {
  createState,
  type Issue,
  type Pull,
  type Run,
  type Said,
  type State,
  token,
} from './state.ts';

/*
 * GitHub for tests: an Enterprise server on loopback, with its git.
 *
 * | as on GitHub | not as on GitHub |
 * |---|---|
 * | 401 for a wrong token; 404 for a repository that the token may not see | without a token all is 401 |
 * | one open pull request of a head and base, else 422; 422 for absent branches and no commits | no forks |
 * | heads follow the pushed branches; merges are commits in the git repository | `rebase` makes a merge commit |
 * | a merge of another sha is 409; without the required checks 405 | no required reviews, no merge queue |
 * | weak ETags and 304; `Link` with the last page | no `since`, `next`, `prev` in `Link` |
 * | 301 for a renamed repository, 307 for writes | a new repository with the old name |
 * | replies to the first comment of a thread only; `updated_at` moves with a comment | no reactions |
 * | logs at another host, behind a signed address; a job of Actions runs again under a new id | one job has one check run, no workflow runs |
 * | limits, faults and lost answers when a test asks for them (`fault`) | no limits of its own |
 * | `mergeable_state` clean, behind, dirty | never blocked, unstable, or unknown at first |
 * | threads of a review by GraphQL, with who may resolve them; they are resolved | not opened again |
 * | auto-merge by GraphQL is noted, and stays on after a push, until it is switched off | and never carried out |
 * | digests by GraphQL, with 404 where a test wants none | other queries; `updatedAt` counts comments only |
 */

export interface Heard {
  /** `GET /repos/acme/shop/pulls/1?page=1` */
  readonly what: string;
  readonly authorization: string | undefined;
  /** As the server that asked names it. */
  readonly host: string | undefined;
  readonly status: number;
}

const repositoryPath = /^\/repos\/([^/]+)\/([^/]+)(?:\/(.*))?$/;
const byId = '/repositories/1';

/** The route below the API; a string: where the repository is now. */
const find = (state: State, routes: readonly Route[], method: string, path: string) => {
  const [, owner, name, rest = ''] = repositoryPath.exec(path) ?? [];
  const isById = path === byId || path.startsWith(`${byId}/`);
  const isOurs = owner === state.owner && name === state.name;
  if (state.formerly.includes(`${owner}/${name}`)) return `${byId}${rest && `/${rest}`}`;
  const below = isById ? path.slice(byId.length + 1) : isOurs ? rest : null;
  if (below !== null && !state.maySee) return null;
  for (const [verb, pattern, answer] of routes) {
    const tested = pattern.startsWith('/') ? path : below;
    const found = tested === null ? null : new RegExp(`^${pattern}$`).exec(tested);
    if (verb === method && found !== null) return { answer, found: found.slice(1) };
  }
  return null;
};

/** What people, and programs other than ours, do there. */
const personSide = (state: State) => {
  const { pulls, said, runs, statuses, issues } = state;
  const pullOf = (number: number): Pull => {
    const pull = pulls.find((each) => each.number === number);
    if (pull === undefined) throw new Error(`no pull request ${number}`);
    return pull;
  };
  const speak = (more: Omit<Said, 'id' | 'at'>): number => {
    const id = state.nextId();
    said.push({ id, at: state.time(), ...more });
    return id;
  };
  return {
    /** Without a conclusion it still runs. */
    check: (
      sha: string,
      name: string,
      conclusion: string | null,
      more: Partial<Run> = {},
    ): number => {
      const id = state.nextId();
      const status = conclusion === null ? 'in_progress' : 'completed';
      const rest = { app: 'github-actions', annotations: [], steps: [], log: null, ...more };
      runs.push({ id, sha, name, status, conclusion, ...rest });
      return id;
    },
    status: (sha: string, context: string, value: string, description = ''): void => {
      const old = statuses.findIndex((each) => each.sha === sha && each.context === context);
      if (old >= 0) statuses.splice(old, 1);
      statuses.push({ id: state.nextId(), sha, context, state: value, description });
    },
    review: (number: number, user: string, value: string, text = ''): number =>
      speak({ number, user, kind: 'review', state: value, text }),
    comment: (number: number, user: string, text: string): number =>
      speak({ number, user, kind: 'plain', text }),
    lineComment: (number: number, user: string, text: string, replyTo?: number): number =>
      speak({ number, user, kind: 'line', text, path: 'a.txt', line: 1, replyTo }),
    editComment: (id: number, text: string): void =>
      void Object.assign(said.find((each) => each.id === id) ?? {}, { text }),
    removeComment: (id: number): void =>
      void said.splice(
        said.findIndex((each) => each.id === id),
        1,
      ),
    merge: (number: number): void => void mergePull(state, pullOf(number), 'squash'),
    autoMerge: (number: number, by: string): void =>
      void Object.assign(pullOf(number), { autoMerge: { sha: '', method: 'squash', by } }),
    hasAutoMerge: (number: number): boolean => pullOf(number).autoMerge !== null,
    close: (number: number): void =>
      void Object.assign(pullOf(number), {
        state: 'closed',
        lastSha: state.bare.tip(pullOf(number).head) ?? '',
      }),
    reopen: (number: number): void => void Object.assign(pullOf(number), { state: 'open' }),
    rename: (name: string): void => {
      state.formerly.push(`${state.owner}/${state.name}`);
      state.name = name;
    },
    /** Only with these checks something is merged; nobody pushes to it. */
    protect: (branch: string, checks: readonly string[]): void => {
      state.protectedBranches.set(branch, checks);
      state.bare.protect([...state.protectedBranches.keys()]);
    },
    issue: (
      title: string,
      text: string,
      labels: readonly string[],
      blockedBy: readonly number[] = [],
    ) => {
      const number = state.nextNumber();
      issues.push({ number, title, text, labels, state: 'open', state_reason: null, blockedBy });
      return number;
    },
    editIssue: (number: number, changes: Partial<Omit<Issue, 'number'>>): void => {
      const found = issues.find((each) => each.number === number);
      if (found === undefined) throw new Error(`no issue ${number}`);
      Object.assign(found, changes);
    },
    closeIssue: (number: number, reason: 'completed' | 'not_planned'): void =>
      void Object.assign(issues.find((each) => each.number === number) ?? {}, {
        state: 'closed',
        state_reason: reason,
      }),
  };
};

export type FakeGitHub = Awaited<ReturnType<typeof openGitHub>>;

export const openGitHub = (project: string) => openForge(project, { routes, base: '/api/v3' });

/** A forge whose repository is a clone of the project; it ends with the test. */
export const openForge = async (
  project: string,
  of: { readonly routes: readonly Route[]; readonly base: string },
) => {
  const state = createState(project);
  const faults = createFaults();
  const heard: Heard[] = [];
  const heardByFiles: Heard[] = [];
  const note = (request: IncomingMessage, response: ServerResponse, what: string, list: Heard[]) =>
    response.once('close', () => {
      const { authorization, host } = request.headers;
      list.push({ what, authorization, host, status: response.statusCode });
    });

  const files = await listen((request, response) => {
    note(request, response, `${request.method} ${request.url}`, heardByFiles);
    const [, id] = /^\/logs\/(\d+)\?sig=signed$/.exec(request.url ?? '') ?? [];
    const log = state.runs.find((run) => String(run.id) === id)?.log;
    response.statusCode = log == null ? 404 : 200;
    response.end(log ?? 'no such file');
  });

  const answerApi = async (
    request: IncomingMessage,
    response: ServerResponse,
    url: URL,
    path: string,
    api: string,
  ): Promise<void> => {
    const body = await read(request);
    const latencyMs = state.latencyMs();
    if (latencyMs > 0) await delay(latencyMs);
    const { method = 'GET' } = request;
    const fault = faults.take(`${method} ${path}`);
    if (carryOut(fault, request, response)) return;
    if (request.headers.authorization !== `Bearer ${token}`)
      return send(request, response, { status: 401, body: { message: 'Bad credentials' } });
    const route = find(state, of.routes, method, path);
    if (typeof route === 'string') {
      const location = `${api}${route}${url.search}`;
      return send(request, response, {
        status: method === 'GET' ? 301 : 307,
        body: { message: 'Moved' },
        headers: { location },
      });
    }
    const asked = { state, api, files, url, found: route?.found ?? [], body };
    const answer = route === null ? notFound : route.answer(asked);
    if (fault?.connection === 'lost') return void request.socket.destroy();
    send(request, response, answer);
  };

  const origin = await listen((request, response) => {
    const url = new URL(request.url ?? '/', origin);
    const [, , path = ''] = /^\/api(\/v\d)?(\/.*)$/.exec(url.pathname) ?? [];
    if (path !== '') {
      note(request, response, `${request.method} ${path}${url.search}`, heard);
      void answerApi(request, response, url, path, `${origin}${of.base}`);
      return;
    }
    const [, rest] = /^\/acme\/[^/]+\.git(\/.*)$/.exec(url.pathname) ?? [];
    note(request, response, `git ${url.pathname}${url.search}`, heard);
    if (!isGitAllowed(token, request, response)) return;
    if (state.gitMovedTo !== null && rest !== undefined)
      response.writeHead(301, { location: `${state.gitMovedTo}${rest}${url.search}` }).end();
    else if (rest === undefined) response.writeHead(404).end();
    else if (!state.mayPush && (url.search + rest).includes('git-receive-pack'))
      response.writeHead(403).end('Permission to acme/shop.git denied to agent-bot.');
    else answerGit(state.bare.dir, rest, request, response);
  });

  return {
    ...{ state, bare: state.bare, token, heard, heardByFiles },
    apiUrl: `${origin}${of.base}`,
    repository: `${state.owner}/${state.name}`,
    remote: `${origin}/acme/shop.git`,
    fault: faults.next,
    faulted: faults.taken,
    person: personSide(state),
  };
};
