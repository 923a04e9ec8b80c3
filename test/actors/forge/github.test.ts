import { describe, expect, test } from 'vitest';
import { createGitHub } from '../../../src/actors/forge/github.ts';
import { describeForge, faultOf, never, wanted } from '../../contracts/forge.ts';
import { type FakeGitHub, openGitHub } from '../../support/forge/github.ts';
import { makeRepository } from '../../support/git.ts';

const open = async () => {
  const github = await openGitHub(makeRepository());
  const forge = forgeOf(github);
  return { github, forge, person: github.person, commit: github.bare.commit };
};

const forgeOf = (
  { apiUrl, repository, token }: Pick<FakeGitHub, 'apiUrl' | 'repository' | 'token'>,
  now: () => number = Date.now,
) => createGitHub({ apiUrl, repository, token: () => token, now, pauseMs: 1 });

describeForge('GitHub', async () => {
  const { github, forge, person, commit } = await open();
  return {
    ...{ forge, person, commit, tip: github.bare.tip },
    loseAnswer: (match) => github.fault({ match, connection: 'lost' }),
  };
});

const publish = async ({ forge, commit }: Awaited<ReturnType<typeof open>>) => {
  commit('agent/bd-a1/pr', 'b.txt', 'new\n');
  return forge.publish(wanted(), never);
};

describe('a fault', () => {
  test('of the token is told, without the token', async () => {
    const { github } = await open();
    const secret = 'ghp_wrongTokenOfSomebody';
    github.fault({ match: /\/shop$/, status: 401, body: { message: `no ${secret} here` } });
    const forge = forgeOf({ ...github, token: secret });

    const first = await faultOf(forge.defaultBranch(never));
    const second = await faultOf(forge.defaultBranch(never));

    expect([first.fault, second.fault]).toEqual(['token', 'token']);
    expect(second.message).toContain('Bad credentials');
    expect(`${first.message}${first.stack}`).not.toContain(secret);
  });

  test('without a token says that there is none', async () => {
    const { apiUrl, repository } = (await open()).github;
    const forge = createGitHub({ apiUrl, repository, token: () => null, now: Date.now });

    expect(await faultOf(forge.defaultBranch(never))).toMatchObject({
      fault: 'token',
      message: expect.stringContaining('there is no token'),
    });
  });

  test('of a right names the right', async () => {
    const { github, forge, commit } = await open();
    commit('agent/bd-a1/pr', 'b.txt', 'new\n');
    github.fault({
      ...{ match: /^POST .*pulls$/, status: 403 },
      headers: { 'x-accepted-github-permissions': 'pull_requests=write' },
      body: { message: 'Resource not accessible by personal access token' },
    });

    const fine = await faultOf(forge.publish(wanted(), never));
    github.state.mayPush = false;
    const push = await faultOf(forge.publish(wanted(), never));

    expect([fine.fault, push.fault]).toEqual(['right', 'right']);
    expect(fine.message).toContain('lacks the right pull_requests: write');
    expect(push.message).toContain('contents: write');
  });

  test('of an archived repository is a refusal', async () => {
    const world = await open();
    const { number } = await publish(world);
    world.github.state.archived = true;
    const reply = { to: null, text: 'x', key: 'k' };

    expect(await faultOf(world.forge.publish(wanted(), never))).toMatchObject({
      fault: 'refused',
      message: expect.stringContaining('archived'),
    });
    expect(await faultOf(world.forge.reply(number, reply, never))).toMatchObject({
      fault: 'refused',
    });
  });

  test('404 of the repository is no missing pull request', async () => {
    const world = await open();
    const { number } = await publish(world);
    world.github.state.maySee = false;

    expect(await faultOf(world.forge.status(number, null, never))).toMatchObject({ fault: 'gone' });
  });

  test.each([502, 503])('%i is asked again where nothing is written', async (status) => {
    const { github, forge } = await open();
    github.fault({ match: /\/shop$/, status, times: 2 });

    expect(await forge.defaultBranch(never)).toBe('main');
    github.fault({ match: /\/shop$/, status, times: 3 });
    expect(await faultOf(forge.defaultBranch(never))).toMatchObject({ fault: 'away' });
  });

  test('in the middle of a write is not repeated', async () => {
    const { github, forge, commit } = await open();
    commit('agent/bd-a1/pr', 'b.txt', 'new\n');
    github.fault({ match: /^POST .*pulls$/, status: 502, times: 2 });

    expect(await faultOf(forge.publish(wanted(), never))).toMatchObject({ fault: 'away' });
    expect(github.heard.filter(({ what }) => what.startsWith('POST'))).toHaveLength(1);
  });

  test.each([
    ['a cut connection', { connection: 'cut' }, /cannot be asked: /],
    [
      'a page of a proxy',
      { status: 200, headers: { 'content-type': 'text/html' }, body: '<html>' },
      /is not of a forge's API/,
    ],
    ['half an answer', { status: 200, body: '{"default_branch": "ma' }, /is not of a forge's API/],
    ['an answer of something else', { status: 200, body: ['hello'] }, /is not of a forge's API/],
    [
      'an answer that is too large',
      { status: 200, body: `"${'x'.repeat(11 * 1024 * 1024)}"` },
      /has more than 10485760 bytes/,
    ],
  ] as const)('%s means away', async (_, fault, message) => {
    const { github, forge } = await open();
    github.fault({ match: /\/shop$/, times: 3, ...fault });

    const error = await faultOf(forge.defaultBranch(never));

    expect(error.fault).toBe('away');
    expect(error.message).toMatch(message);
  });

  test('of a server that is not there means away', async () => {
    const forge = forgeOf({ apiUrl: 'http://127.0.0.1:9/api/v3', repository: 'a/b', token: 'x' });

    expect(await faultOf(forge.defaultBranch(never))).toMatchObject({
      fault: 'away',
      message: expect.stringContaining('127.0.0.1:9 cannot be asked'),
    });
  });

  test('a caller who stops it does not wait', async () => {
    const { github, forge } = await open();
    github.fault({ match: /\/shop$/, connection: 'silent' });
    const stop = new AbortController();
    const call = faultOf(forge.defaultBranch(stop.signal));
    await expect.poll(() => github.faulted()).toBe(1);

    stop.abort();

    expect(await call).toMatchObject({ fault: 'away', message: 'the request was stopped' });
    expect(await faultOf(forge.defaultBranch(stop.signal))).toMatchObject({ fault: 'away' });
  });
});

describe('a limit', () => {
  const theirs = '2026-11-01T12:00:00Z';
  const date = new Date(theirs).toUTCString();
  const reset = String(Date.parse(theirs) / 1_000 + 600);
  const now = Date.parse('2026-11-05T00:00:00Z');

  test.each([
    ['429 with a pause', 429, { 'retry-after': '120' }, 'slow down', 120_000],
    [
      ...(['a spent limit, by a clock that differs', 403] as const),
      { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': reset, date },
      ...(['API rate limit exceeded', 601_000] as const),
    ],
    ['a secondary limit', 403, {}, 'You have exceeded a secondary rate limit', 60_000],
    [
      ...(['a pause until a time, by a clock that differs', 429] as const),
      { 'retry-after': new Date(Date.parse(theirs) + 90_000).toUTCString(), date },
      ...(['slow down', 90_000] as const),
    ],
    ['one that never ends', 429, { 'retry-after': '99999999' }, 'x', 7_200_000],
  ] as const)('%s says when it ends', async (_, status, headers, message, pause) => {
    const { github } = await open();
    const forge = forgeOf(github, () => now);
    github.fault({ match: /\/shop$/, status, headers, body: { message } });

    const error = await faultOf(forge.defaultBranch(never));

    expect([error.fault, (error.retryAt ?? 0) - now]).toEqual(['limit', pause]);
  });

  test('nothing is asked before it ends', async () => {
    const { github } = await open();
    let at = now;
    const forge = forgeOf(github, () => at);
    github.fault({ match: /\/shop$/, status: 429, headers: { 'retry-after': '60' } });

    await faultOf(forge.defaultBranch(never));
    const { fault } = await faultOf(forge.issues([], never));
    const asked = github.heard.length;
    at += 60_001;

    expect([fault, asked]).toEqual(['limit', 1]);
    expect(await forge.defaultBranch(never)).toBe('main');
  });

  test('that ended is tried by one request alone', async () => {
    const { github } = await open();
    let at = now;
    const forge = forgeOf(github, () => at);
    const times = { status: 429, headers: { 'retry-after': '60' }, times: 2 };
    github.fault({ match: /./, ...times });
    await faultOf(forge.defaultBranch(never));
    at += 60_001;

    const all = [1, 2, 3].map(() => faultOf(forge.issues([], never)));

    expect((await Promise.all(all)).map(({ fault }) => fault)).toEqual(Array(3).fill('limit'));
    expect(github.heard).toHaveLength(2);
    at += 60_001;
    await Promise.all([1, 2, 3].map(() => forge.issues([], never)));
    expect(github.heard).toHaveLength(5);
  });

  test('of GraphQL, which comes with status 200, counts for all requests', async () => {
    const { github } = await open();
    const forge = forgeOf(github, () => now);
    const errors = [{ type: 'RATE_LIMITED', message: 'API rate limit exceeded' }];
    const headers = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': reset, date };
    github.fault({ match: /graphql/, status: 200, headers, body: { errors } });

    const digests = await faultOf(forge.digests([1], never));
    const other = await faultOf(forge.defaultBranch(never));

    expect([digests.fault, (digests.retryAt ?? 0) - now]).toEqual(['limit', 601_000]);
    expect([other.fault, github.heard.length]).toEqual(['limit', 1]);
  });
});

describe('digests', () => {
  test('of a hundred pull requests cost one request', async () => {
    const { github, forge } = await open();

    const digests = await forge.digests(
      Array.from({ length: 150 }, (_, each) => each + 1),
      never,
    );

    expect([digests?.size, github.heard.length, forge.sent()]).toEqual([150, 2, 2]);
  });

  test('do not change while GitHub works out whether it can be merged', async () => {
    const world = await open();
    const { number } = await publish(world);
    const digest = async () => (await world.forge.digests([number], never))?.get(number);
    const before = await digest();
    const { bare } = world.github;
    const { tip } = bare;
    Object.assign(bare, { tip: (branch: string) => (branch === 'main' ? null : tip(branch)) });

    expect(await digest()).toBe(before);
  });

  test.each([
    ['without GraphQL', { hasGraphQl: false }],
    ['without the repository', { maySee: false }],
  ])('are not there %s', async (_, state) => {
    const { github, forge } = await open();
    Object.assign(github.state, state);

    expect(await forge.digests([1], never)).toBe(null);
  });

  test('tell a wrong token', async () => {
    const { github } = await open();
    const forge = forgeOf({ ...github, token: 'ghp_wrong' });

    expect(await faultOf(forge.digests([1], never))).toMatchObject({ fault: 'token' });
  });
});

describe('requests', () => {
  test('for what did not change are conditional', async () => {
    const world = await open();
    const { number, headSha } = await publish(world);
    world.person.check(headSha, 'build', 'success');
    world.person.comment(number, 'olga', 'good');
    const first = await world.forge.status(number, null, never);
    await world.forge.comments(number, never);
    world.github.heard.length = 0;

    // A restarted server has the last status, and no other memory.
    const forge = forgeOf(world.github);
    await forge.status(number, first, never);
    await world.forge.comments(number, never);

    expect(world.github.heard.map(({ status }) => status)).toEqual(Array(7).fill(304));
  });

  test('follow a renamed repository', async () => {
    const world = await open();
    world.person.rename('store');

    const { number } = await publish(world);

    expect(await world.forge.status(number, null, never)).toMatchObject({ state: 'open' });
    await world.forge.reply(number, { to: null, text: 'x', key: 'k' }, never);
    expect(await world.forge.comments(number, never)).toHaveLength(1);
  });

  test('are not sent on to another host', async () => {
    const { github, forge } = await open();
    const other = await openGitHub(makeRepository());
    const location = `${other.apiUrl}/repos/acme/shop`;
    github.fault({ match: /\/shop$/, status: 301, headers: { location } });

    const error = await faultOf(forge.defaultBranch(never));

    expect([error.fault, other.heard]).toEqual(['gone', []]);
    expect(error.message).toContain(new URL(other.apiUrl).host);
  });

  test('in a circle of redirects end', async () => {
    const { github, forge } = await open();
    const headers = { location: `${github.apiUrl}/repos/acme/shop` };
    github.fault({ match: /\/shop$/, status: 301, times: 9, headers });

    expect(await faultOf(forge.defaultBranch(never))).toMatchObject({ fault: 'gone' });
  });

  test('for a log give the host of the files no token', async () => {
    const world = await open();
    const { number, headSha } = await publish(world);
    world.person.check(headSha, 'test', 'failure', { log: 'it broke\n' });
    const status = await world.forge.status(number, null, never);
    const [check] = status?.checks ?? [];

    const text = check && (await world.forge.failure(check, never));

    expect(text).toContain('it broke');
    expect(world.github.heardByFiles).toMatchObject([
      { what: expect.stringMatching(/^GET \/logs\//), authorization: undefined, status: 200 },
    ]);
  });

  test('say in the text of a failure which right a log needs', async () => {
    const world = await open();
    const { number, headSha } = await publish(world);
    world.person.check(headSha, 'test', 'failure', { output: { title: 'broken' } });
    const headers = { 'x-accepted-github-permissions': 'actions=read' };
    world.github.fault({ match: /actions\/jobs/, status: 403, headers });
    const status = await world.forge.status(number, null, never);
    const [check] = status?.checks ?? [];

    const text = check && (await world.forge.failure(check, never));

    expect(text).toContain('broken');
    expect(text).toContain('lacks the right actions: read');
  });
});

test('an app knows itself without a user', async () => {
  const world = await open();
  const { number } = await publish(world);
  world.github.state.isApp = true;

  await world.forge.reply(number, { to: null, text: 'x', key: 'k' }, never);

  expect(await world.forge.comments(number, never)).toMatchObject([{ ours: true }]);
});

test('dependencies are read from the text where the API has none', async () => {
  const { github, forge, person } = await open();
  github.state.hasDependencies = false;
  const first = person.issue('One', 'Blocked by: #9', []);
  person.issue('Two', `depends on #${first}, #7 and acme/other#3`, [], [99]);

  const issues = await forge.issues([], never);

  expect(issues.map(({ blockedBy }) => blockedBy)).toEqual([[9], [first, 7]]);
});

test('auto-merge that the repository does not allow is a refusal with the reason', async () => {
  const world = await open();
  const { number, headSha } = await publish(world);
  world.github.state.allowsAutoMerge = false;
  const how = { sha: headSha, method: 'squash', whenItMay: true } as const;

  expect(await faultOf(world.forge.merge(number, how, never))).toMatchObject({
    fault: 'refused',
    message: expect.stringContaining('allow auto-merge in the settings of acme/shop'),
  });
});

describe('the thread of a line', () => {
  const answer = async (world: Awaited<ReturnType<typeof open>>, resolves: boolean) => {
    const { number } = await publish(world);
    const first = world.person.lineComment(number, 'mary', 'why?');
    for (let n = 0; n < 100; n += 1) world.person.lineComment(number, 'mary', `other ${n}`);
    const asked = world.person.lineComment(number, 'mary', 'and how?', first);
    const to = { id: String(asked), kind: 'line' } as const;
    const reply = { to, text: 'so', key: 'k', resolves };
    const again = () => world.forge.reply(number, reply, never);
    await again();
    const { said } = world.github.state;
    return {
      again,
      replies: said.filter(({ user }) => user === 'agent-bot').length,
      resolved: () => said.flatMap(({ id, isResolved }) => (isResolved === true ? [id] : [])),
      first,
    };
  };

  test('is resolved with the answer, also when that was written before', async () => {
    const world = await open();
    world.github.state.hasGraphQl = false;
    const { again, resolved, first } = await answer(world, true);
    const before = resolved();

    world.github.state.hasGraphQl = true;
    await again();
    await again();

    expect([before, resolved()]).toEqual([[], [first]]);
    expect(world.github.state.said.filter(({ user }) => user === 'agent-bot')).toHaveLength(1);
  });

  test('stays open where nothing was said about it', async () => {
    const { resolved, replies } = await answer(await open(), false);

    expect([resolved(), replies]).toEqual([[], 1]);
  });

  test('is found behind a hundred others', async () => {
    const world = await open();
    const { number } = await publish(world);
    for (let n = 0; n < 250; n += 1) world.person.lineComment(number, 'mary', `other ${n}`);
    const asked = world.person.lineComment(number, 'mary', 'why?');
    const to = { id: String(asked), kind: 'line' } as const;

    await world.forge.reply(number, { to, text: 'so', key: 'k', resolves: true }, never);

    expect(world.github.state.said.find(({ isResolved }) => isResolved)?.id).toBe(asked);
  });

  const errors = [{ type: 'FORBIDDEN', message: 'Resource not accessible by integration' }];
  test.each([
    ['the token may not resolve it', { mayResolve: false }, null],
    ['the token may not ask for threads', {}, { status: 200, body: { data: null, errors } }],
    ['GraphQL is refused', {}, { status: 403 }],
    ['GraphQL is away', {}, { status: 502 }],
  ] as const)('stays open where %s, and the answer is there', async (_, state, fault) => {
    const world = await open();
    Object.assign(world.github.state, state);
    if (fault !== null) world.github.fault({ match: /graphql/, times: 9, ...fault });

    const { resolved, replies } = await answer(world, true);

    expect([resolved(), replies]).toEqual([[], 1]);
  });
});

describe('auto-merge that cannot be switched off', () => {
  const withAutoMerge = async () => {
    const world = await open();
    const { number, headSha } = await publish(world);
    world.person.protect('main', ['build']);
    await world.forge.merge(number, { sha: headSha, method: 'squash', whenItMay: true }, never);
    return { ...world, number };
  };

  test.each([
    ['the token may not', { mayStopAutoMerge: false }],
    ['GraphQL is not there', { hasGraphQl: false }],
  ])('names the right where %s', async (_, state) => {
    const { github, forge, number } = await withAutoMerge();
    Object.assign(github.state, state);

    expect(await faultOf(forge.withdraw(number, never))).toMatchObject({
      fault: 'right',
      message: expect.stringContaining('switch it off there'),
    });
  });

  test('is off when an answer was lost', async () => {
    const { github, forge, number, person } = await withAutoMerge();
    github.fault({ match: /^POST .*graphql/, connection: 'lost' });

    expect(await faultOf(forge.withdraw(number, never))).toMatchObject({ fault: 'away' });
    await forge.withdraw(number, never);

    expect(person.hasAutoMerge(number)).toBe(false);
  });
});
