import { openForge } from './github.ts';
import { type Answer, type Asked, headOf, mergePull, missingChecks, type Route } from './routes.ts';
import { type Pull, type Said, type State, us } from './state.ts';

/*
 * Gitea's API over the same state as GitHub's, from its description; no real server was asked.
 *
 * | as its description says | not |
 * |---|---|
 * | a draft is a title with `WIP:`; pages by `limit`, at most 50; no ETag | comments of issues have pages, too |
 * | comments beside lines are found by their review | each thread is a review of its own |
 * | checks are statuses, those of Actions lead to their job | no `warning` |
 * | a merge of another head is 409, of a closed one 404, against a rule 405 | a scheduled merge is noted, and never carried out |
 * | no annotations, no reason why an issue was closed | no moment in which mergeability is unknown |
 */

const not = (status: number, message: string): Answer => ({ status, body: { message } });
const notFound = not(404, "The target couldn't be found.");
const ids = new Map<string, number>();
const userOf = (login: string) => {
  if (login === '') return { id: -1, login: 'Ghost' };
  if (!ids.has(login)) ids.set(login, ids.size + 1);
  return { id: ids.get(login), login };
};

const paged = ({ url }: Asked, all: readonly unknown[]): { page: unknown[]; headers: Headers } => {
  const size = Math.min(Number(url.searchParams.get('limit') ?? 30), 50);
  const page = Number(url.searchParams.get('page') ?? 1);
  const last = Math.max(1, Math.ceil(all.length / size));
  const to = new URL(url);
  to.searchParams.set('page', String(last));
  const link: Headers = page < last ? { link: `<${to.href}>; rel="last"` } : {};
  return { page: all.slice((page - 1) * size, page * size), headers: link };
};
type Headers = Readonly<Record<string, string>>;
const listOf = (asked: Asked, all: readonly unknown[]): Answer => {
  const { page, headers } = paged(asked, all);
  return { body: page, headers };
};

const shown = (state: State, api: string, pull: Pull) => {
  const sha = headOf(state, pull);
  const base = state.bare.tip(pull.base);
  const said = state.said.findLast((each) => each.number === pull.number)?.at;
  return {
    ...{ number: pull.number, title: pull.title, body: pull.body, state: pull.state },
    html_url: `${api.replace('/api/v1', '')}/${state.owner}/${state.name}/pulls/${pull.number}`,
    draft: pull.title.startsWith('WIP:'),
    updated_at: said ?? '2026-10-31T00:00:00Z',
    merged: pull.merged !== null,
    mergeable: base !== null && state.bare.mergeTree(base, sha) !== null,
    merge_commit_sha: pull.merged,
    head: { ref: pull.head, sha },
    base: { ref: pull.base },
  };
};

const withPull =
  (answer: (asked: Asked, pull: Pull) => Answer) =>
  (asked: Asked): Answer => {
    const pull = asked.state.pulls.find(({ number }) => String(number) === asked.found[0]);
    return pull === undefined ? notFound : answer(asked, pull);
  };

const create = ({ state, api, body }: Asked): Answer => {
  const [head, base] = [String(body['head']), String(body['base'])];
  if (head === base) return not(422, 'Invalid PullRequest: no changes between head and base');
  const sha = state.bare.tip(head);
  if (sha === null || state.bare.tip(base) === null) return notFound;
  if (state.pulls.some((each) => each.state === 'open' && each.head === head && each.base === base))
    return not(409, 'pull request already exists for these targets');
  const pull: Pull = {
    ...{ number: state.nextNumber(), head, base, title: String(body['title']), draft: false },
    ...{ body: String(body['body'] ?? ''), state: 'open', merged: null, lastSha: sha },
    autoMerge: null,
  };
  state.pulls.push(pull);
  return { status: 201, body: shown(state, api, pull) };
};

const change = withPull(({ state, api, body }, pull) => {
  if (typeof body['title'] === 'string') pull.title = body['title'];
  if (typeof body['body'] === 'string') pull.body = body['body'];
  if (typeof body['base'] === 'string') pull.base = body['base'];
  if (body['state'] === 'closed' && pull.state === 'open')
    Object.assign(pull, { lastSha: headOf(state, pull), state: 'closed' });
  return { status: 201, body: shown(state, api, pull) };
});

const merge = withPull(({ state, body }, pull) => {
  const sha = headOf(state, pull);
  if (pull.state === 'closed') return pull.merged === null ? notFound : not(405, '');
  if (missingChecks(state, pull, sha).length > 0) {
    if (body['merge_when_checks_succeed'] !== true)
      return not(405, 'Not all required status checks successful');
    if (pull.autoMerge !== null) return not(409, 'pull request is already scheduled to auto merge');
    pull.autoMerge = { sha, method: String(body['Do']), by: us };
    return { status: 201 };
  }
  if (body['head_commit_id'] !== sha) return not(409, 'head out of date');
  const why = mergePull(state, pull, String(body['Do']));
  return why === null ? {} : not(409, why);
});

const reviewOfThread = 1_000_000;
const commentOf = ({ id, user, text, at, path, line }: Said) => ({
  ...{ id, user: userOf(user), body: text, created_at: at },
  ...(path === undefined ? {} : { path, position: line ?? 0, original_position: 0 }),
});
const saidOf = ({ state, found }: Asked, kind: Said['kind']) =>
  state.said.filter((each) => each.kind === kind && String(each.number) === found[0]);
const ownStates: Readonly<Record<string, string>> = {
  CHANGES_REQUESTED: 'REQUEST_CHANGES',
  COMMENTED: 'COMMENT',
};

const reviews = (asked: Asked): Answer => {
  const own = saidOf(asked, 'review');
  const shownReviews = own
    .filter(({ state }) => state !== 'DISMISSED')
    .map((each) => ({
      ...{ id: each.id, user: userOf(each.user), body: each.text, submitted_at: each.at },
      ...{ state: ownStates[each.state ?? ''] ?? each.state, comments_count: 0 },
      dismissed: own.some(
        ({ user, state, id }) => user === each.user && state === 'DISMISSED' && id > each.id,
      ),
    }));
  const threads = saidOf(asked, 'line')
    .filter(({ replyTo }) => replyTo === undefined)
    .map((each) => ({
      ...{ id: each.id + reviewOfThread, user: userOf(each.user), body: '', state: 'COMMENT' },
      ...{ submitted_at: each.at, comments_count: 1 },
    }));
  return listOf(asked, [...shownReviews, ...threads]);
};

const say = (asked: Asked, more: Pick<Said, 'kind' | 'text'> & Partial<Said>): Answer => {
  const { state, found } = asked;
  if (state.archived) return not(423, 'repo is archived');
  const said = {
    ...{ id: state.nextId(), number: Number(found[0]), user: us, at: state.time(), ...more },
  };
  state.said.push(said);
  return { status: 201, body: commentOf(said) };
};

const jobPage = ({ state }: Asked, id: number): string =>
  `/${state.owner}/${state.name}/actions/runs/${id}/jobs/0`;
const statusesOf = (asked: Asked) => {
  const { state, found } = asked;
  const newest = new Map(state.runs.filter(({ sha }) => sha === found[0]).map((r) => [r.name, r]));
  return [
    ...[...newest.values()].map(({ id, name, conclusion, app, output }) => ({
      ...{ id, context: name, status: conclusion ?? 'pending' },
      description: [output?.title, output?.summary].filter(Boolean).join('\n'),
      target_url: app === 'github-actions' ? jobPage(asked, id) : `https://ci.example/${id}`,
    })),
    ...state.statuses
      .filter(({ sha }) => sha === found[0])
      .map(({ state: status, ...rest }) => ({ ...rest, status })),
  ];
};

const runWith = ({ state }: Asked, id: string | undefined) =>
  state.runs.find((run) => String(run.id) === id && run.app === 'github-actions');

const issueOf = (state: State, number: number) => {
  const found = state.issues.find((each) => each.number === number);
  const name = `${state.owner}/${state.name}`;
  return {
    ...{ number, title: found?.title, body: found?.text, state: found?.state },
    labels: found?.labels.map((label) => ({ name: label })),
    milestone: found?.milestone == null ? null : { title: found.milestone },
    html_url: `https://forge.example/${name}/issues/${number}`,
    updated_at: '2026-11-03T00:00:00Z',
    ...{ pull_request: null, repository: { full_name: name } },
  };
};

export const giteaRoutes: readonly Route[] = [
  ['GET', '/user', () => ({ body: userOf(us) })],
  [
    'GET',
    '',
    ({ state }) => ({
      body: {
        ...{ default_branch: 'main', full_name: `${state.owner}/${state.name}` },
        ...{ archived: state.archived, permissions: { push: state.mayPush } },
      },
    }),
  ],
  [
    'GET',
    'assignees',
    (asked) =>
      listOf(
        asked,
        [...asked.state.people.values()]
          .filter(({ permission, writesIssues }) => permission !== 'read' || writesIssues)
          .filter(({ permission }) => permission !== 'none')
          .map(({ login }) => userOf(login)),
      ),
  ],
  [
    'GET',
    'collaborators/([^/]+)/permission',
    ({ state, found }) => {
      const login = decodeURIComponent(found[0] ?? '');
      const { permission } = state.person(login);
      if (!state.mayAskPermissions && login !== us)
        return not(403, 'Only admins can query all permissions');
      return state.people.has(login)
        ? { body: { permission, role_name: permission, user: userOf(login) } }
        : notFound;
    },
  ],
  [
    'GET',
    'branches/(.+)',
    ({ state, found }) => (state.bare.tip(found[0] ?? '') === null ? notFound : {}),
  ],
  [
    'GET',
    'pulls',
    (asked) =>
      listOf(
        asked,
        asked.state.pulls
          .filter(({ state }) => state === asked.url.searchParams.get('state'))
          .map((pull) => shown(asked.state, asked.api, pull)),
      ),
  ],
  ['POST', 'pulls', create],
  ['GET', 'pulls/(\\d+)', withPull(({ state, api }, pull) => ({ body: shown(state, api, pull) }))],
  ['PATCH', 'pulls/(\\d+)', change],
  ['POST', 'pulls/(\\d+)/merge', merge],
  [
    'DELETE',
    'pulls/(\\d+)/merge',
    withPull((_, pull) => {
      if (pull.autoMerge === null) return notFound;
      if (pull.autoMerge.by !== us) return not(403, 'You are not allowed to cancel it');
      pull.autoMerge = null;
      return { status: 204 };
    }),
  ],
  ['GET', 'pulls/(\\d+)/reviews', reviews],
  [
    'POST',
    'pulls/(\\d+)/reviews',
    (asked) => {
      const [first] = asked.body['comments'] as { path: string; body: string }[];
      return say(asked, {
        kind: 'line',
        text: first?.body ?? '',
        path: first?.path ?? '',
        line: 1,
      });
    },
  ],
  [
    'GET',
    'pulls/(\\d+)/reviews/(\\d+)/comments',
    (asked) => {
      const root = Number(asked.found[1]) - reviewOfThread;
      const thread = saidOf(asked, 'line').filter((e) => e.id === root || e.replyTo === root);
      return listOf(asked, thread.map(commentOf));
    },
  ],
  [
    'POST',
    'pulls/(\\d+)/comments/(\\d+)/replies',
    (asked) => {
      const to = asked.state.said.find(({ id }) => String(id) === asked.found[1]);
      if (to === undefined || !asked.state.hasReplies) return notFound;
      const more = { path: to.path ?? '', line: 1, replyTo: to.replyTo ?? to.id };
      return say(asked, { kind: 'line', text: String(asked.body['body']), ...more });
    },
  ],
  [
    'GET',
    'issues/(\\d+)/comments',
    (asked) => listOf(asked, saidOf(asked, 'plain').map(commentOf)),
  ],
  [
    'POST',
    'issues/(\\d+)/comments',
    (asked) => say(asked, { kind: 'plain', text: String(asked.body['body']) }),
  ],
  [
    'PATCH',
    'issues/comments/(\\d+)',
    ({ state, found, body }) => {
      const said = state.said.find(({ id }) => String(id) === found[0]);
      if (said === undefined) return notFound;
      said.text = String(body['body']);
      return { body: commentOf(said) };
    },
  ],
  [
    'GET',
    'issues',
    (asked) =>
      listOf(
        asked,
        asked.state.issues
          .filter(({ state, gone }) => state === 'open' && gone === undefined)
          .map(({ number }) => issueOf(asked.state, number))
          .toReversed(),
      ),
  ],
  [
    'GET',
    'issues/(\\d+)',
    ({ state, found }) => {
      const own = state.issues.find(({ number }) => String(number) === found[0]);
      return own === undefined || own.gone !== undefined
        ? notFound
        : { body: issueOf(state, own.number) };
    },
  ],
  [
    'GET',
    'issues/(\\d+)/dependencies',
    (asked) => {
      const own = asked.state.issues.find(({ number }) => String(number) === asked.found[0]);
      return listOf(
        asked,
        (own?.blockedBy ?? []).map((number) => issueOf(asked.state, number)),
      );
    },
  ],
  [
    'GET',
    'commits/([0-9a-f]+)/status',
    (asked) => {
      const { page, headers } = paged(asked, statusesOf(asked));
      return { body: { state: 'pending', statuses: page }, headers };
    },
  ],
  ['GET', 'commits/([0-9a-f]+)/statuses', (asked) => listOf(asked, statusesOf(asked))],
  [
    'GET',
    'actions/runs',
    (asked) => ({
      body: {
        workflow_runs: asked.state.runs
          .filter(({ sha }) => sha === asked.url.searchParams.get('head_sha'))
          .map(({ id }) => ({ id, html_url: jobPage(asked, id).replace('/jobs/0', '') })),
      },
    }),
  ],
  [
    'GET',
    'actions/runs/(\\d+)/jobs',
    (asked) => {
      const id = Number(asked.found[0]);
      return { body: { jobs: [{ id, html_url: jobPage(asked, id) }] } };
    },
  ],
  [
    'GET',
    'actions/jobs/(\\d+)',
    (asked) => {
      const run = runWith(asked, asked.found[0]);
      return run === undefined ? notFound : { body: { name: run.name, steps: run.steps } };
    },
  ],
  [
    'GET',
    'actions/jobs/(\\d+)/logs',
    (asked) => {
      const log = runWith(asked, asked.found[0])?.log;
      return log == null
        ? notFound
        : {
            status: 302,
            headers: { location: `${asked.files}/logs/${asked.found[0]}?sig=signed` },
          };
    },
  ],
  [
    'POST',
    'actions/runs/(\\d+)/jobs/(\\d+)/rerun',
    (asked) => {
      const run = runWith(asked, asked.found[1]);
      if (run === undefined) return notFound;
      const id = asked.state.nextId();
      asked.state.runs.push({ ...run, id, status: 'in_progress', conclusion: null });
      return { status: 201 };
    },
  ],
];

export const openGitea = (project: string) =>
  openForge(project, { routes: giteaRoutes, base: '/api/v1' });
