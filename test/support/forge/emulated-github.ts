import type { IncomingMessage, ServerResponse } from 'node:http';
import { answerGit } from '../git-http.ts';
import { openBare } from './bare.ts';
import { createMirror } from './emulate-mirror.ts';
import {
  type Asked,
  createAdditions,
  type EmulateAnswer,
  isWrite,
  type Json,
} from './emulated-routes.ts';
import type { Answer } from './routes.ts';
import { isGitAllowed, listen, read, send } from './serving.ts';

/*
 * GitHub as others understood it: `emulate`, which is not ours, behind a proxy that adds what it
 * lacks. The repository is ours, served by git's own program; emulate gets its commits by the git
 * data API before each request, and has to have them under the same ids.
 *
 * | GitHub | emulate 0.12.2 | our proxy |
 * |---|---|---|
 * | git over HTTP | 404 | `git http-backend` |
 * | 401 for a wrong token | serves it, as the first user | 401 |
 * | ETag and 304 | none | weak ETag of the whole answer |
 * | a pull request has the head of its branch | keeps the head it was opened with | names the tip of the branch; of a closed one, too |
 * | one open pull request of a head and base, else 422 | 201 | 422 |
 * | 422 for a head that is no branch | makes the branch | 422; not for a base |
 * | 422 without commits | 201 | as emulate |
 * | `mergeable` is worked out | always true and clean | by `git merge-tree`: clean or dirty; never behind, blocked, unknown |
 * | a merge of another sha: 409; one that is refused: 405 | 422 | 409; 405 |
 * | a merge has what is new on the base | has the files of the old head | a merge in git; emulate notes that there was one; `rebase` makes a merge commit |
 * | required checks and reviews of the newest head | of the head it was opened with | as emulate |
 * | `updated_at` moves with comments, reviews and pushes | not | with those that went through the proxy; whole seconds |
 * | permission `write` and `read` | `push`, `pull` | as GitHub |
 * | permission of a stranger: `read` where all may read | 404 | 404 |
 * | annotations are a list | an object with a list | a list |
 * | check runs by pages | all in one | all in one |
 * | check runs name their app | null | null: no job, no log, no run again |
 * | commit statuses | 404 | kept; newest of each context |
 * | replies to a comment | 404 | a review comment with `in_reply_to_id`; 404 for an answer, as on GitHub |
 * | comments of a review by `line` | 422, by `position` | the position is the line, which is right for a new file |
 * | `since` of lists of comments; reactions | ignored; 404 | not added: nothing of ours uses them |
 * | GraphQL | 404 | review threads, resolving, digests, auto-merge that is never needed; other queries fail |
 * | limits | counts, and never refuses | as emulate; our own fake has limits, faults and lost answers |
 */

const owner = 'acme';
const repository = `${owner}/shop`;
const ours = 'ghp_agentBot0123456789';
/** The accounts, by their tokens: `olga` administers, `mary` may push, `rita` may read. */
const accounts = { [ours]: 'agent-bot', ghp_olga: 'olga', ghp_mary: 'mary', ghp_rita: 'rita' };
type Person = 'olga' | 'mary' | 'rita';

/** What emulate starts with. */
export const seed = {
  tokens: Object.fromEntries(Object.entries(accounts).map(([token, login]) => [token, { login }])),
  github: {
    users: Object.values(accounts).map((login) => ({ login })),
    orgs: [{ login: owner, members: [{ login: 'olga', role: 'admin' }] }],
    repos: [{ owner, name: 'shop', auto_init: false }],
  },
};

const createEmulate =
  (url: string) =>
  async (token: string, method: string, path: string, body: Json = {}): Promise<EmulateAnswer> => {
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(isWrite(method) ? { body: JSON.stringify(body) } : {}),
    });
    const text = await answer.text();
    const link = answer.headers.get('link');
    return {
      status: answer.status,
      body: text === '' ? null : JSON.parse(text),
      headers: link === null ? {} : { link },
    };
  };

const wrongToken: Answer = { status: 401, body: { message: 'Bad credentials' } };

/** A repository at emulate, which runs already, that begins as the one of the project. */
export const openEmulatedGitHub = async (project: string, emulateUrl: string) => {
  const bare = openBare(project);
  const emulate = createEmulate(emulateUrl);
  const asOlga = async (method: string, path: string, body?: Json): Promise<Json> => {
    const answer = await emulate('ghp_olga', method, `/repos/${repository}/${path}`, body);
    if (answer.status < 300) return (answer.body ?? {}) as Json;
    throw new Error(`emulate: ${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  };
  for (const [login, permission] of [
    ['agent-bot', 'push'],
    ['mary', 'push'],
    ['rita', 'pull'],
  ])
    await asOlga('PUT', `collaborators/${login}`, { permission });
  const mirror = createMirror(bare.dir, asOlga);
  const additions = createAdditions({ bare, mirror, owner });
  const heard: { readonly what: string; readonly status: number }[] = [];

  const answerApi = async (
    { method = 'GET', headers }: IncomingMessage,
    path: string,
    body: Json,
  ): Promise<Answer> => {
    const token = headers.authorization?.replace('Bearer ', '') ?? '';
    if (!(token in accounts)) return wrongToken;
    await mirror.update();
    const ask: Asked['ask'] = (verb, where, sent) =>
      emulate(token, verb, where.startsWith('/') ? where : `/repos/${repository}/${where}`, sent);
    const below = `/repos/${repository}/`;
    const where = path.startsWith(below) ? path.slice(below.length) : path;
    return additions({ method, path: where, body, ask });
  };

  const origin = await listen((request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? '/', 'http://localhost');
    const [, gitPath] = /^\/acme\/shop\.git(\/.*)$/.exec(url.pathname) ?? [];
    if (gitPath !== undefined) {
      if (isGitAllowed(ours, request, response)) answerGit(bare.dir, gitPath, request, response);
      return;
    }
    const path = url.pathname.replace(/^\/api(\/v3)?/, '') + url.search;
    response.once('close', () =>
      heard.push({ what: `${request.method} ${path}`, status: response.statusCode }),
    );
    const answered = read(request).then((body) => answerApi(request, path, body));
    answered.then(
      (answer) => send(request, response, answer),
      (error: Error) => send(request, response, { status: 500, body: { message: error.message } }),
    );
  });

  return {
    ...{ bare, repository, heard, token: ours },
    apiUrl: `${origin}/api/v3`,
    remote: `${origin}/${repository}.git`,
    /** What a person, or a program of theirs, sends to the API of the repository. */
    as: async (person: Person, method: string, path: string, body: Json = {}) => {
      const answer = await fetch(`${origin}/api/v3/repos/${repository}/${path}`, {
        method,
        headers: { authorization: `Bearer ghp_${person}` },
        ...(isWrite(method) ? { body: JSON.stringify(body) } : {}),
      });
      if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
      return answer.json();
    },
  };
};
