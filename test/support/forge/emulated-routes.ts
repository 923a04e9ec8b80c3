import type { openBare } from './bare.ts';
import type { createMirror } from './emulate-mirror.ts';
import { type Answer, invalid, notFound } from './routes.ts';

export type Json = Readonly<Record<string, unknown>>;

export interface EmulateAnswer {
  readonly status: number;
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Asked {
  readonly method: string;
  /** Below the repository, or from the top of the API; with its query. */
  readonly path: string;
  readonly body: Json;
  /** Asks emulate with the same token. */
  readonly ask: (method: string, path: string, body?: Json) => Promise<EmulateAnswer>;
}

interface Pull extends Json {
  readonly number: number;
  readonly state: string;
  readonly title: string;
  readonly updated_at: string;
  readonly merged: boolean;
  readonly merge_commit_sha: string | null;
  readonly head: Json & { readonly ref: string; readonly sha: string };
  readonly base: Json & { readonly ref: string };
}

interface Line extends Json {
  readonly id: number;
  readonly path: string;
  readonly position: number | null;
  readonly line: number | null;
  readonly in_reply_to_id: number | null;
}

interface Status {
  readonly id: number;
  readonly sha: string;
  readonly context: string;
  readonly state: string;
  readonly description: string | null;
  readonly target_url: string | null;
}

interface Parts {
  readonly bare: ReturnType<typeof openBare>;
  readonly mirror: ReturnType<typeof createMirror>;
  readonly owner: string;
}

type Route = readonly [
  string,
  RegExp,
  (asked: Asked, found: readonly string[]) => Promise<Answer> | Answer,
];

export const isWrite = (method: string): boolean => ['POST', 'PUT', 'PATCH'].includes(method);
const isDone = ({ status }: EmulateAnswer): boolean => status < 300;
const now = (): string => new Date().toISOString().replace(/\.\d+/, '');
const fail = (message: string, type = 'UNPROCESSABLE'): Answer => ({
  body: { data: null, errors: [{ type, message }] },
});
const permissions: Readonly<Record<string, string>> = {
  push: 'write',
  maintain: 'write',
  triage: 'read',
  pull: 'read',
};

/** Changes the body of an answer that is a success. */
const changed = <Body>(answer: EmulateAnswer, change: (body: Body) => unknown): Answer =>
  isDone(answer) ? { ...answer, body: change(answer.body as Body) } : answer;

/** Answers as GitHub where emulate does not, else as emulate. */
export const createAdditions = ({ bare, mirror, owner }: Parts) => {
  /** By number: when it moved for the last time, and how it was merged. */
  const moved = new Map<number, string>();
  const merges = new Map<number, { readonly commit: string; readonly head: string }>();
  const resolved = new Set<string>();
  const statuses: Status[] = [];
  const tips = new Map<number, string>();

  const pullOf = (pull: Pull): Pull => {
    const { number, base } = pull;
    const merge = merges.get(number);
    const sha = merge?.head ?? bare.tip(pull.head.ref) ?? pull.head.sha;
    if (tips.has(number) && tips.get(number) !== sha) moved.set(number, now());
    tips.set(number, sha);
    const isClean = bare.mergeTree(base.ref, sha) !== null;
    return {
      ...pull,
      head: { ...pull.head, sha },
      merge_commit_sha: merge?.commit ?? pull.merge_commit_sha,
      updated_at: [moved.get(number) ?? '', pull.updated_at].sort().at(-1) ?? '',
      ...(pull.state === 'open'
        ? { mergeable: isClean, mergeable_state: isClean ? 'clean' : 'dirty' }
        : {}),
    };
  };
  const readPull = async ({ ask }: Asked, number: string): Promise<Pull | null> => {
    const answer = await ask('GET', `pulls/${number}`);
    return isDone(answer) ? pullOf(answer.body as Pull) : null;
  };
  const pass = ({ ask, method, path, body }: Asked) => ask(method, path, body);

  const createPull = async (asked: Asked): Promise<Answer> => {
    const { head, base } = asked.body;
    if (bare.tip(String(head)) === null) return invalid('PullRequest', 'head', 'invalid');
    const query = new URLSearchParams({ head: `${owner}:${head}`, base: String(base) });
    const open = await asked.ask('GET', `pulls?${query}`);
    if ((open.body as readonly unknown[]).length > 0) {
      const message = `A pull request already exists for ${owner}:${head}.`;
      return invalid('PullRequest', 'head', 'custom', message);
    }
    return changed(await pass(asked), pullOf);
  };

  const merge = async (asked: Asked, [number = '']: readonly string[]): Promise<Answer> => {
    const pull = await readPull(asked, number);
    if (pull === null) return notFound;
    const { sha = pull.head.sha, merge_method: method = 'merge', ...rest } = asked.body;
    if (sha !== pull.head.sha)
      return { status: 409, body: { message: 'Head branch was modified. Try the merge again.' } };
    const base = bare.tip(pull.base.ref) ?? '';
    const tree = bare.mergeTree(base, pull.head.sha);
    if (tree === null) return { status: 405, body: { message: 'Pull Request is not mergeable' } };
    const noted = await asked.ask('PUT', `pulls/${number}/merge`, {
      ...rest,
      merge_method: method,
    });
    if (!isDone(noted)) return { ...noted, status: noted.status === 422 ? 405 : noted.status };
    const parents = method === 'squash' ? [base] : [base, pull.head.sha];
    const message = `${pull.title} (#${number})`;
    const commit = bare.land(pull.base.ref, tree, parents, message);
    mirror.forget(pull.base.ref);
    merges.set(pull.number, { commit, head: pull.head.sha });
    moved.set(pull.number, now());
    return { body: { ...(noted.body as Json), sha: commit } };
  };

  /** What a person says makes the pull request another one. */
  const say = async (
    asked: Asked,
    [number = '']: readonly string[],
    body: Json = asked.body,
    path = asked.path,
  ): Promise<Answer> => {
    const answer = await asked.ask(asked.method, path, body);
    if (isDone(answer)) moved.set(Number(number), now());
    return answer;
  };

  const readLines = async ({ ask }: Asked, number: string): Promise<readonly Line[]> => {
    const answer = await ask('GET', `pulls/${number}/comments?per_page=100`);
    return isDone(answer) ? (answer.body as readonly Line[]) : [];
  };
  const lineOf = ({ line, position, ...rest }: Line) => ({
    ...rest,
    ...{ position, line: line ?? position },
  });

  const reply = async (asked: Asked, found: readonly string[]): Promise<Answer> => {
    const [number = '', id = ''] = found;
    const first = (await readLines(asked, number)).find((line) => String(line.id) === id);
    if (first === undefined || first.in_reply_to_id !== null) return notFound;
    const { path, position, line } = first;
    const body = { body: asked.body['body'], path, position, line, in_reply_to_id: first.id };
    return say(asked, found, body, `pulls/${number}/comments`);
  };

  const review = (asked: Asked, found: readonly string[]): Promise<Answer> => {
    const comments = (asked.body['comments'] ?? []) as readonly Json[];
    const placed = comments.map(({ line, ...rest }) => ({ position: line, ...rest }));
    return say(asked, found, { ...asked.body, comments: placed });
  };

  const addStatus = ({ body }: Asked, [sha = '']: readonly string[]): Answer => {
    const { context = 'default', state, description = null, target_url = null } = body;
    const status = { id: statuses.length + 1, sha, context, state, description, target_url };
    statuses.push(status as Status);
    return { status: 201, body: status };
  };
  /** The newest first. */
  const statusesOf = (sha = ''): readonly Status[] =>
    statuses.filter((each) => each.sha === sha).reverse();
  const newestStatuses = (sha = ''): readonly Status[] =>
    statusesOf(sha).filter(
      ({ context }, at, all) => all.findIndex((each) => each.context === context) === at,
    );

  const threads = async (asked: Asked, number: string): Promise<Answer> => {
    const firsts = (await readLines(asked, number)).filter((line) => line.in_reply_to_id === null);
    const nodes = firsts.map((line) => ({
      ...{ id: `PRRT_${line.id}`, isResolved: resolved.has(`PRRT_${line.id}`) },
      ...{ viewerCanResolve: true, comments: { nodes: [{ fullDatabaseId: String(line.id) }] } },
    }));
    const reviewThreads = { pageInfo: { hasNextPage: false, endCursor: null }, nodes };
    return { body: { data: { repository: { pullRequest: { reviewThreads } } } } };
  };

  const digest = async (asked: Asked, number: string) => {
    const pull = await readPull(asked, number);
    if (pull === null) return null;
    const { sha } = pull.head;
    const [runs, reviews] = await Promise.all([
      asked.ask('GET', `commits/${sha}/check-runs`),
      asked.ask('GET', `pulls/${number}/reviews?per_page=100`),
    ]);
    return {
      ...{ mergeable: pull['mergeable'] === false ? 'CONFLICTING' : 'MERGEABLE' },
      ...{ mergeStateStatus: String(pull['mergeable_state']).toUpperCase(), state: pull.state },
      ...{ headRefOid: sha, updatedAt: pull.updated_at, isMerged: pull.merged },
      ...{ checks: [runs.body, newestStatuses(sha)], reviews: reviews.body },
    };
  };

  const graphql = async (asked: Asked): Promise<Answer> => {
    const { query = '', variables = {} } = asked.body;
    const { id, number } = variables as Record<string, unknown>;
    const text = String(query);
    if (text.includes('resolveReviewThread')) {
      resolved.add(String(id));
      return { body: { data: { resolveReviewThread: { thread: { isResolved: true } } } } };
    }
    if (text.includes('reviewThreads')) return threads(asked, String(number));
    if (text.includes('enablePullRequestAutoMerge')) return fail('Pull request is in clean status');
    if (!text.includes('digest')) return fail('Our proxy does not know this query');
    const found: Record<string, unknown> = {};
    for (const [, alias = '', of = ''] of text.matchAll(/(p\d+): pullRequest\(number: (\d+)\)/g))
      found[alias] = await digest(asked, of);
    return { body: { data: { repository: found } } };
  };

  const routes: readonly Route[] = [
    ['POST', /^\/graphql$/, graphql],
    ['POST', /^pulls$/, createPull],
    [
      'GET',
      /^pulls(\?|$)/,
      async (asked) => changed(await pass(asked), (all: readonly Pull[]) => all.map(pullOf)),
    ],
    ['GET', /^pulls\/(\d+)$/, async (asked) => changed(await pass(asked), pullOf)],
    ['PATCH', /^pulls\/(\d+)$/, async (asked) => changed(await pass(asked), pullOf)],
    ['PUT', /^pulls\/(\d+)\/merge$/, merge],
    [
      'GET',
      /^pulls\/\d+\/comments(\?|$)/,
      async (asked) => changed(await pass(asked), (all: readonly Line[]) => all.map(lineOf)),
    ],
    ['POST', /^pulls\/(\d+)\/comments\/(\d+)\/replies$/, reply],
    ['POST', /^pulls\/(\d+)\/reviews$/, review],
    ['POST', /^(?:pulls|issues)\/(\d+)\/comments$/, say],
    [
      'GET',
      /^collaborators\/[^/]+\/permission$/,
      async (asked) =>
        changed(await pass(asked), ({ permission, ...rest }: Json) => ({
          ...rest,
          permission: permissions[String(permission)] ?? permission,
        })),
    ],
    [
      'GET',
      /^check-runs\/\d+\/annotations(\?|$)/,
      async (asked) =>
        changed(await pass(asked), ({ check_annotations }: Json) => check_annotations),
    ],
    ['POST', /^statuses\/([0-9a-f]+)$/, addStatus],
    ['GET', /^commits\/([0-9a-f]+)\/statuses(?:\?|$)/, (_, [sha]) => ({ body: statusesOf(sha) })],
    [
      'GET',
      /^commits\/([0-9a-f]+)\/status(?:\?|$)/,
      (_, [sha]) => ({ body: { sha, statuses: newestStatuses(sha) } }),
    ],
  ];

  return async (asked: Asked): Promise<Answer> => {
    for (const [method, pattern, answer] of routes) {
      const found = method === asked.method ? pattern.exec(asked.path) : null;
      if (found !== null) return answer(asked, found.slice(1));
    }
    return pass(asked);
  };
};
