import { type Pull, type Said, type State, us } from './state.ts';
import { listThreads, resolveThread } from './threads.ts';

export interface Asked {
  readonly state: State;
  readonly api: string;
  /** Where logs are: another server. */
  readonly files: string;
  readonly url: URL;
  /** What the pattern of the route found. */
  readonly found: readonly string[];
  readonly body: Readonly<Record<string, unknown>>;
}

/** The method, a pattern of the path, and the answer. */
export type Route = readonly [string, string, (asked: Asked) => Answer];

export interface Answer {
  readonly status?: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export const invalid = (
  resource: string,
  field: string,
  code: string,
  message?: string,
): Answer => ({
  status: 422,
  body: { message: 'Validation Failed', errors: [{ resource, field, code, message }] },
});
/** Of what nobody spoke about. */
const firstTime = '2026-10-31T00:00:00Z';
export const notFound: Answer = { status: 404, body: { message: 'Not Found' } };
const lacks = (right: string): Answer => ({
  status: 403,
  headers: { 'x-accepted-github-permissions': right },
  body: { message: 'Resource not accessible by personal access token' },
});

/** A page of a list, and where the last one is. */
const paged = (
  { url }: Asked,
  all: readonly unknown[],
  wrap: (page: readonly unknown[]) => unknown = (page) => page,
): Answer => {
  const size = Math.min(Number(url.searchParams.get('per_page') ?? 30), 100);
  const page = Number(url.searchParams.get('page') ?? 1);
  const last = Math.max(1, Math.ceil(all.length / size));
  const to = new URL(url);
  to.searchParams.set('page', String(last));
  const link: Answer['headers'] = page < last ? { link: `<${to.href}>; rel="last"` } : {};
  return { body: wrap(all.slice((page - 1) * size, page * size)), headers: link };
};

export const headOf = ({ bare }: State, { state, head, lastSha }: Pull): string =>
  state === 'open' ? (bare.tip(head) ?? lastSha) : lastSha;

const stateOfMerge = ({ bare, protectedBranches }: State, pull: Pull, sha: string): string => {
  const base = bare.tip(pull.base);
  if (base === null) return 'unknown';
  if (bare.mergeTree(base, sha) === null) return 'dirty';
  if (protectedBranches.has(pull.base) && !bare.isIn(base, sha)) return 'behind';
  return 'clean';
};

const listed = (state: State, api: string, pull: Pull) => ({
  ...{ number: pull.number, node_id: `PR_${pull.number}`, title: pull.title, body: pull.body },
  html_url: `${api.replace('/api/v3', '')}/${state.owner}/${state.name}/pull/${pull.number}`,
  ...{ state: pull.state, draft: pull.draft },
  merged_at: pull.merged === null ? null : '2026-11-02T00:00:00Z',
  merge_commit_sha: pull.merged ?? 'f'.repeat(40),
  auto_merge:
    pull.autoMerge === null ? null : { enabled_by: { login: pull.autoMerge.by, type: 'User' } },
  updated_at: state.said.findLast((each) => each.number === pull.number)?.at ?? firstTime,
  head: { ref: pull.head, sha: headOf(state, pull) },
  base: { ref: pull.base },
});

const shown = (state: State, api: string, pull: Pull) => {
  const found = pull.state === 'open' ? stateOfMerge(state, pull, headOf(state, pull)) : 'unknown';
  return {
    ...listed(state, api, pull),
    merged: pull.merged !== null,
    mergeable: found === 'unknown' ? null : found !== 'dirty',
    mergeable_state: found,
  };
};

const pullOf = ({ state, found }: Asked): Pull | undefined =>
  state.pulls.find(({ number }) => String(number) === found[0]);

const withPull =
  (answer: (asked: Asked, pull: Pull) => Answer) =>
  (asked: Asked): Answer => {
    const pull = pullOf(asked);
    return pull === undefined ? notFound : answer(asked, pull);
  };

const userOf = (state: State, login: string) => {
  const { type } = state.person(login);
  return {
    user: login === '' ? null : { login, type },
    author_association: state.person(login).association,
  };
};

const comment = (state: State, { id, user, text, at, path, line, replyTo }: Said) => ({
  ...{ id, body: text, created_at: at, ...userOf(state, user) },
  ...(path === undefined ? {} : { path, line: line ?? null, in_reply_to_id: replyTo ?? null }),
});

const saidOf = ({ state, found }: Asked, kind: Said['kind']): readonly Said[] =>
  state.said.filter((each) => each.kind === kind && String(each.number) === found[0]);

const say = (asked: Asked, more: Pick<Said, 'kind'> & Partial<Said>): Answer => {
  const { state, found, body } = asked;
  if (state.archived)
    return { status: 403, body: { message: 'Repository was archived so is read-only.' } };
  const said = {
    ...{ id: state.nextId(), number: Number(found[0]), user: us, at: state.time() },
    ...{ text: String(body['body']), ...more },
  };
  state.said.push(said);
  return { status: 201, body: comment(state, said) };
};

/** Carries out a merge, if its checks allow it. */
export const mergePull = (state: State, pull: Pull, method: string): string | null => {
  const { bare } = state;
  const [base, sha] = [bare.tip(pull.base), headOf(state, pull)];
  const tree = base === null ? null : bare.mergeTree(base, sha);
  if (base === null || tree === null) return 'Pull Request is not mergeable';
  const parents = method === 'squash' ? [base] : [base, sha];
  pull.lastSha = sha;
  pull.merged = bare.land(pull.base, tree, parents, `${pull.title} (#${pull.number})`);
  pull.state = 'closed';
  return null;
};

export const missingChecks = (
  { runs, statuses, protectedBranches }: State,
  pull: Pull,
  sha: string,
) =>
  (protectedBranches.get(pull.base) ?? []).filter(
    (name) =>
      !runs.some((run) => run.sha === sha && run.name === name && run.conclusion === 'success') &&
      !statuses.some(
        (each) => each.sha === sha && each.context === name && each.state === 'success',
      ),
  );

const merge = withPull(({ state, body }, pull) => {
  const sha = headOf(state, pull);
  if (pull.state === 'closed')
    return { status: 405, body: { message: 'Pull Request is not mergeable' } };
  if (body['sha'] !== undefined && body['sha'] !== sha)
    return {
      status: 409,
      body: { message: 'Head branch was modified. Review and try the merge again.' },
    };
  const missing = missingChecks(state, pull, sha);
  if (missing.length > 0)
    return { status: 405, body: { message: `Required status check "${missing[0]}" is expected.` } };
  const why = mergePull(state, pull, String(body['merge_method'] ?? 'merge'));
  if (why !== null) return { status: 405, body: { message: why } };
  return { body: { merged: true, sha: pull.merged, message: 'Pull Request successfully merged' } };
});

const create = (asked: Asked): Answer => {
  const { state, api, body } = asked;
  const { bare, owner } = state;
  if (!state.mayPush) return lacks('pull_requests=write');
  if (state.archived)
    return { status: 403, body: { message: 'Repository was archived so is read-only.' } };
  const [head, base] = [String(body['head']), String(body['base'])];
  const sha = bare.tip(head);
  if (sha === null) return invalid('PullRequest', 'head', 'invalid');
  if (bare.tip(base) === null) return invalid('PullRequest', 'base', 'invalid');
  if (state.pulls.some((pull) => pull.state === 'open' && pull.head === head && pull.base === base))
    return invalid(
      'PullRequest',
      '',
      'custom',
      `A pull request already exists for ${owner}:${head}.`,
    );
  if (!bare.hasCommitsFor(head, base))
    return invalid('PullRequest', '', 'custom', `No commits between ${base} and ${head}`);
  const pull: Pull = {
    ...{ number: state.nextNumber(), head, base, title: String(body['title']) },
    ...{ body: String(body['body'] ?? ''), draft: body['draft'] === true },
    ...{ state: 'open', merged: null, lastSha: sha, autoMerge: null },
  };
  state.pulls.push(pull);
  return { status: 201, body: shown(state, api, pull) };
};

const list = (asked: Asked): Answer => {
  const { state, api, url } = asked;
  const [owner, head] = (url.searchParams.get('head') ?? ':').split(/:(.*)/);
  const wanted = url.searchParams.get('state') ?? 'open';
  const found = state.pulls
    .filter((pull) => pull.head === head && owner === state.owner)
    .filter((pull) => wanted === 'all' || pull.state === wanted)
    .toReversed();
  return paged(
    asked,
    found.map((pull) => listed(state, api, pull)),
  );
};

const change = withPull(({ state, api, body }, pull) => {
  if (typeof body['title'] === 'string') pull.title = body['title'];
  if (typeof body['body'] === 'string') pull.body = body['body'];
  if (typeof body['base'] === 'string') {
    if (state.bare.tip(body['base']) === null) return invalid('PullRequest', 'base', 'invalid');
    pull.base = body['base'];
  }
  if (body['state'] === 'closed' && pull.state === 'open')
    Object.assign(pull, { lastSha: headOf(state, pull), state: 'closed' });
  return { body: shown(state, api, pull) };
});

const digested = (state: State, pull: Pull) => {
  const sha = headOf(state, pull);
  const merge = pull.state === 'open' ? stateOfMerge(state, pull, sha) : 'unknown';
  const of = ({ number }: Said): boolean => number === pull.number;
  const contexts = [
    ...state.runs
      .filter((run) => run.sha === sha)
      .map(({ id, conclusion }) => ({ id, conclusion })),
    ...state.statuses.filter((each) => each.sha === sha).map(({ id, state }) => ({ id, state })),
  ];
  return {
    state: pull.merged !== null ? 'MERGED' : pull.state.toUpperCase(),
    ...{ isDraft: pull.draft, headRefOid: sha, baseRefName: pull.base, reviewDecision: null },
    updatedAt: state.said.findLast(of)?.at ?? '2026-11-01T00:00:00Z',
    mergeable: merge === 'unknown' ? 'UNKNOWN' : merge === 'dirty' ? 'CONFLICTING' : 'MERGEABLE',
    mergeStateStatus: merge.toUpperCase(),
    comments: { totalCount: state.said.filter((each) => of(each) && each.kind === 'plain').length },
    reviews: { totalCount: state.said.filter((each) => of(each) && each.kind === 'review').length },
    commits: {
      nodes: [
        {
          commit: {
            statusCheckRollup: contexts.length === 0 ? null : { contexts: { nodes: contexts } },
          },
        },
      ],
    },
  };
};

const digests = ({ state, body }: Asked): Answer => {
  const { owner, name } = body['variables'] as Record<string, string>;
  if (!state.maySee || owner !== state.owner || ![state.name, ...formerNames(state)].includes(name))
    return {
      body: {
        data: { repository: null },
        errors: [{ type: 'NOT_FOUND', message: 'Could not resolve to a Repository' }],
      },
    };
  const asked = [...String(body['query']).matchAll(/(p\d+): pullRequest\(number: (\d+)\)/g)];
  const repository = Object.fromEntries(
    asked.map(([, alias, number]) => {
      const pull = state.pulls.find((each) => String(each.number) === number);
      return [alias, pull === undefined ? null : digested(state, pull)];
    }),
  );
  const errors = Object.values(repository).includes(null)
    ? { errors: [{ type: 'NOT_FOUND', message: 'Could not resolve to a PullRequest' }] }
    : {};
  return { body: { data: { repository }, ...errors } };
};

const formerNames = ({ formerly }: State): readonly (string | undefined)[] =>
  formerly.map((name) => name.split('/')[1]);

const stopAutoMerge = ({ state, body }: Asked): Answer => {
  const { id } = body['variables'] as Record<string, string>;
  const pull = state.pulls.find(({ number }) => `PR_${number}` === id);
  const fail = (type: string, message: string): Answer => ({
    body: { data: { disablePullRequestAutoMerge: null }, errors: [{ type, message }] },
  });
  if (pull === undefined) return fail('NOT_FOUND', 'Could not resolve to a node');
  if (!state.mayStopAutoMerge)
    return fail('FORBIDDEN', 'Resource not accessible by personal access token');
  if (pull.autoMerge === null) return fail('UNPROCESSABLE', "Can't disable auto-merge");
  pull.autoMerge = null;
  state.autoMerges.push(`off ${headOf(state, pull)}`);
  return { body: { data: { disablePullRequestAutoMerge: { clientMutationId: null } } } };
};

const graphql = (asked: Asked): Answer => {
  const { state, body } = asked;
  if (!state.hasGraphQl) return notFound;
  if (String(body['query']).includes('digest')) return digests(asked);
  if (String(body['query']).includes('reviewThreads')) return listThreads(asked);
  if (String(body['query']).includes('resolveReviewThread')) return resolveThread(asked);
  if (String(body['query']).includes('viewer {'))
    return { body: { data: { viewer: { login: us } } } };
  if (String(body['query']).includes('disablePullRequestAutoMerge')) return stopAutoMerge(asked);
  const { id, sha, method } = body['variables'] as Record<string, string>;
  const pull = state.pulls.find(({ number }) => `PR_${number}` === id);
  const fail = (message: string): Answer => ({
    body: {
      data: { enablePullRequestAutoMerge: null },
      errors: [{ type: 'UNPROCESSABLE', message }],
    },
  });
  if (pull === undefined) return fail('Could not resolve to a node');
  if (!state.allowsAutoMerge) return fail('Auto merge is not allowed for this repository');
  const head = headOf(state, pull);
  if (head !== sha) return fail('Head sha was modified.');
  if (missingChecks(state, pull, head).length === 0) return fail('Pull request is in clean status');
  pull.autoMerge = { sha, method: String(method), by: us };
  state.autoMerges.push(`on ${sha}`);
  return { body: { data: { enablePullRequestAutoMerge: { clientMutationId: null } } } };
};

const runView = ({ id, name, status, conclusion, app, output }: State['runs'][number]) => ({
  ...{ id, name, status, conclusion, app: { slug: app }, output: output ?? {} },
  html_url: `https://forge.example/runs/${id}`,
});

const runOf = ({ state, found }: Asked) => state.runs.find(({ id }) => String(id) === found[0]);

const issue = (asked: Asked, number: number) => {
  const { state, api } = asked;
  const found = state.issues.find((each) => each.number === number);
  const { hasDependencies, owner, name } = state;
  return {
    ...{ number, title: found?.title, body: found?.text, state: found?.state },
    ...{
      state_reason: found?.state_reason,
      labels: found?.labels.map((label) => ({ name: label })),
      milestone: found?.milestone == null ? null : { title: found.milestone },
    },
    html_url: `https://forge.example/${owner}/${name}/issues/${number}`,
    repository_url: `${api}/repos/${owner}/${name}`,
    updated_at: '2026-11-03T00:00:00Z',
    ...(hasDependencies
      ? { issue_dependencies_summary: { blocked_by: found?.blockedBy.length ?? 0 } }
      : {}),
  };
};

const issuesWith = (asked: Asked): Answer => {
  const labels = (asked.url.searchParams.get('labels') ?? '').split(',').filter(Boolean);
  const found = asked.state.issues.filter(
    (each) =>
      each.state === 'open' &&
      each.gone === undefined &&
      labels.every((label) => each.labels.includes(label)),
  );
  const pulls = asked.state.pulls
    .filter(({ state }) => state === 'open' && labels.length === 0)
    .map(({ number }) => ({
      ...issue(asked, number),
      title: 'a pull',
      body: '',
      state: 'open',
      labels: [],
      pull_request: {},
    }));
  return paged(asked, [...found.map(({ number }) => issue(asked, number)), ...pulls]);
};

/** Below the API, or below the repository where the pattern begins without `/`. */
export const routes: readonly Route[] = [
  [
    'GET',
    '/user',
    ({ state }) => (state.isApp ? lacks('') : { body: { login: us, type: 'User' } }),
  ],
  ['POST', '/graphql', graphql],
  [
    'GET',
    '',
    ({ state }) => ({
      body: {
        ...{
          default_branch: 'main',
          full_name: `${state.owner}/${state.name}`,
          owner: { login: state.owner },
          archived: state.archived,
        },
        permissions: { push: state.mayPush },
      },
    }),
  ],
  ['GET', 'pulls', list],
  ['POST', 'pulls', create],
  ['GET', 'pulls/(\\d+)', withPull(({ state, api }, pull) => ({ body: shown(state, api, pull) }))],
  ['PATCH', 'pulls/(\\d+)', change],
  ['PUT', 'pulls/(\\d+)/merge', merge],
  [
    'GET',
    'pulls/(\\d+)/reviews',
    (asked) =>
      paged(
        asked,
        saidOf(asked, 'review').map((each) => {
          const { created_at: submitted_at, ...rest } = comment(asked.state, each);
          return { ...rest, state: each.state, submitted_at };
        }),
      ),
  ],
  [
    'GET',
    'pulls/(\\d+)/comments',
    (asked) =>
      paged(
        asked,
        saidOf(asked, 'line').map((each) => comment(asked.state, each)),
      ),
  ],
  [
    'POST',
    'pulls/(\\d+)/comments/(\\d+)/replies',
    (asked) => {
      const first = asked.state.said.find(({ id }) => String(id) === asked.found[1]);
      if (first === undefined || first.replyTo !== undefined) return notFound;
      return say(asked, { kind: 'line', path: first.path ?? '', replyTo: first.id });
    },
  ],
  [
    'GET',
    'issues/(\\d+)/comments',
    (asked) =>
      paged(
        asked,
        saidOf(asked, 'plain').map((each) => comment(asked.state, each)),
      ),
  ],
  ['POST', 'issues/(\\d+)/comments', (asked) => say(asked, { kind: 'plain' })],
  [
    'PATCH',
    'issues/comments/(\\d+)',
    (asked) => {
      const found = asked.state.said.find(({ id }) => String(id) === asked.found[0]);
      if (found === undefined) return notFound;
      if (found.user !== us) return lacks('issues=write');
      found.text = String(asked.body['body']);
      return { body: comment(asked.state, found) };
    },
  ],
  [
    'GET',
    'issues/(\\d+)',
    (asked) => {
      const number = Number(asked.found[0]);
      const own = asked.state.issues.find((each) => each.number === number);
      if (own?.gone === 'deleted')
        return { status: 410, body: { message: 'This issue was deleted' } };
      if (own === undefined) return notFound;
      const found = issue(asked, number);
      return own.gone === 'transferred'
        ? { body: { ...found, repository_url: `${asked.api}/repos/acme/other` } }
        : { body: found };
    },
  ],
  ['GET', 'issues', issuesWith],
  [
    'GET',
    'issues/(\\d+)/dependencies/blocked_by',
    (asked) => {
      if (!asked.state.hasDependencies) return notFound;
      const own = asked.state.issues.find(({ number }) => String(number) === asked.found[0]);
      return paged(
        asked,
        (own?.blockedBy ?? []).map((number) => issue(asked, number)),
      );
    },
  ],
  [
    'GET',
    'collaborators/([^/]+)/permission',
    ({ state, found }) => ({
      body: { permission: state.person(decodeURIComponent(found[0] ?? '')).permission },
    }),
  ],
  [
    'GET',
    'commits/([0-9a-f]+)/check-runs',
    (asked) =>
      paged(
        asked,
        asked.state.runs
          .filter(({ sha }) => sha === asked.found[0])
          .toReversed()
          .map(runView),
        (check_runs) => ({ total_count: asked.state.runs.length, check_runs }),
      ),
  ],
  [
    'GET',
    'commits/([0-9a-f]+)/status',
    (asked) =>
      paged(
        asked,
        asked.state.statuses.filter(({ sha }) => sha === asked.found[0]),
        (statuses) => ({ state: 'pending', statuses }),
      ),
  ],
  [
    'GET',
    'commits/([0-9a-f]+)/statuses',
    (asked) =>
      paged(
        asked,
        asked.state.statuses.filter(({ sha }) => sha === asked.found[0]),
      ),
  ],
  [
    'GET',
    'check-runs/(\\d+)',
    (asked) => {
      const run = runOf(asked);
      return run === undefined ? notFound : { body: runView(run) };
    },
  ],
  [
    'GET',
    'check-runs/(\\d+)/annotations',
    (asked) => paged(asked, runOf(asked)?.annotations ?? []),
  ],
  [
    'GET',
    'actions/jobs/(\\d+)',
    (asked) => {
      const run = runOf(asked);
      return run === undefined ? notFound : { body: { name: run.name, steps: run.steps } };
    },
  ],
  [
    'POST',
    'actions/jobs/(\\d+)/rerun',
    (asked) => {
      const run = runOf(asked);
      if (run === undefined || run.app !== 'github-actions') return notFound;
      const id = asked.state.nextId();
      asked.state.runs.push({ ...run, id, status: 'in_progress', conclusion: null });
      return { status: 201, body: {} };
    },
  ],
  [
    'GET',
    'actions/jobs/(\\d+)/logs',
    (asked) => {
      const run = runOf(asked);
      if (run === undefined || run.log === null) return notFound;
      return { status: 302, headers: { location: `${asked.files}/logs/${run.id}?sig=signed` } };
    },
  ],
];
