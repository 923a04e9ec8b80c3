import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import Database from 'libsql';
import { expect, test } from 'vitest';
import { createSqliteStore } from '../../src/actors/store/sqlite.ts';
import { differencesOf } from '../support/differences.ts';
import { createPeople } from '../support/forge/people.ts';
import { openForgeProject } from '../support/forge/project.ts';
import { isLong } from '../support/long.ts';
import { randomFrom, seed } from '../support/random.ts';

const batches = isLong ? 20 : 1;
/** Each merge moves the base of the others, so more of them take longer than their number says. */
const perBatch = isLong ? 5 : 2;
const maxRounds = 3;
const longestMs = 600_000;
/** So long, after all are open, there are faults, kills, and people who want something. */
const faultyMs = isLong ? 40_000 : 60_000;

/** Each attempt adds a line, and answers its comments. */
const answers = Array.from({ length: 40 }, (_, at) => ({ comment: at + 1, answer: `So ${at}.` }));
const command =
  "f=$(basename $ATS_ATTEMPT | cut -d# -f1); sed -i '/^[<=>|]\\{7\\}/d' $f 2>/dev/null; echo line >> $f";
const scripts = [
  {
    turns: [
      { calls: [{ tool: 'bash', arguments: { command } }] },
      { calls: [{ tool: 'finish', arguments: { status: 'done', summary: 'Done.', answers } }] },
    ],
  },
];

/** The states of its chart in which something is asked of the forge, or of git. */
const invoking = [
  ...['pushing', 'replying', 'watching', 'takingIn', 'rerunning', 'mending', 'updating'],
  ...['merging', 'abandoning'],
] as const;

/** `{open: {forge: 'watching', …}}`: `watching` */
const leafOf = (value: unknown): string => {
  if (typeof value === 'string') return value;
  const [[name, below] = ['', '']] = Object.entries(value as Readonly<Record<string, unknown>>);
  return leafOf(name === 'open' ? (below as Readonly<Record<string, unknown>>)['forge'] : below);
};

const openStates = (stateDir: string) => {
  const db = new Database(join(stateDir, 'journal.db'), { readonly: true });
  const read = db.prepare("select snapshot from actors where id like '%/pr'");
  return {
    now: (): readonly string[] =>
      (read.all() as { snapshot: string }[]).map(({ snapshot }) =>
        leafOf(JSON.parse(snapshot).value),
      ),
    close: () => db.close(),
  };
};

const openBatch = async (start: number) => {
  const random = randomFrom(start);
  const project = await openForgeProject(scripts, {
    ...{ merge: 'when_green', publish: 'when_complete', max_rounds: maxRounds },
    checks_wait_seconds: 60,
  });
  const { agent, github } = project;
  await agent('config', 'set', 'merge.verify', '["test -f a.txt"]');
  await agent('config', 'set', 'agent.on_interrupted', 'repeat');
  github.state.latencyMs = () => Math.floor(random() * 60);
  // Behind a protected base, a branch is brought up to date before anything else.
  if (random() < 0.5) github.person.protect('main', ['ci']);
  const fileOf = (head: string): string => head.split('/')[1] ?? '';
  return {
    ...project,
    random,
    people: createPeople(github, random, { asksAtMost: maxRounds, fileOf }),
  };
};

type Batch = Awaited<ReturnType<typeof openBatch>>;

/** Waits for the state that kills have met least of those that come up, then kills in it. */
const killIn = async (
  { stateDir, stopServer, random }: Batch,
  hits: Map<string, number>,
  startMs: number,
) => {
  const states = openStates(stateDir);
  // A slow machine needs longer for the same steps.
  const until = Date.now() + 500 + random() * (2_500 + 2 * startMs);
  const least = (): number => Math.min(...invoking.map((name) => hits.get(name) ?? 0));
  while (Date.now() < until && !states.now().some((name) => (hits.get(name) ?? 0) <= least()))
    await delay(5);
  await delay(random() * 30);
  await stopServer('SIGKILL');
  for (const name of states.now()) hits.set(name, (hits.get(name) ?? 0) + 1);
  states.close();
};

/** A person discards the work of this task when its pull request is open. */
const discardWhenOpen = async ({ agent, github }: Batch, id: string): Promise<void> => {
  const isOpen = (): boolean =>
    github.state.pulls.some(({ head, state }) => head === `agent/${id}/pr` && state === 'open');
  for (let isDone = false; !isDone; await delay(300))
    isDone = isOpen() && (await agent('discard', id)).code === 0;
};

const runBatch = async (batch: Batch, hits: Map<string, number>) => {
  const { agent, github, people, start, random } = batch;
  const { state } = github;
  const ids: string[] = [];
  for (let each = 0; each <= perBatch; each += 1)
    ids.push((await agent('create', `Task ${each}`, '--role', 'engineer')).out.trim());
  expect((await agent('run', ...ids, '--async')).code).toBe(0);
  const [unwanted = '', ...wanted] = ids;
  const discarded = discardWhenOpen(batch, unwanted);
  const began = Date.now();
  const isOver = (): boolean =>
    state.pulls.length === ids.length && state.pulls.every((pull) => pull.state === 'closed');
  const clock = setInterval(people.step, 100);
  let kills = 0;
  let startMs = 0;
  let openSince = Number.POSITIVE_INFINITY;
  while (!isOver() && Date.now() - began < longestMs) {
    if (state.pulls.length === ids.length) openSince = Math.min(openSince, Date.now());
    const now = Date.now();
    if (now - openSince > faultyMs || now - began > longestMs / 3) {
      people.calm();
      await delay(500);
      continue;
    }
    await delay(random() * 500);
    await killIn(batch, hits, startMs);
    kills += 1;
    const startedAt = Date.now();
    await start();
    startMs = Date.now() - startedAt;
  }
  clearInterval(clock);
  if (isOver()) await discarded;
  return { wanted, unwanted, kills, ms: Date.now() - began };
};

const keyOf = (text: string): string => /agent-task-server:(.+?) -->/.exec(text)?.[1] ?? '';

test(`${batches * perBatch} pull requests under faults and kills are merged once, with each comment answered once (seed ${seed})`, {
  tags: ['slow'],
  timeout: batches * longestMs * 2,
}, async () => {
  const hits = new Map<string, number>();
  const total = { kills: 0, rounds: 0, replies: 0 };
  for (let at = 0; at < batches; at += 1) {
    const own = seed + at;
    const batch = await openBatch(own * 7);
    const { agent, github, people, stopServer, stateDir, untilPr } = batch;
    const { state, bare } = github;
    const { wanted, unwanted, kills, ms } = await runBatch(batch, hits);
    const prs = [];
    // What is merged there, the server sees at its next look; else `unmerged` says why.
    for (const id of wanted) await untilPr(id, { state: 'merged' }).catch(() => null);
    for (const id of wanted) prs.push(JSON.parse((await agent('show', id, '--json')).out));
    await stopServer();
    const store = createSqliteStore({ file: join(stateDir, 'journal.db'), redact: (text) => text });
    const differences = await differencesOf(store);
    store.close();
    const db = new Database(join(stateDir, 'journal.db'), { readonly: true });
    const rows = db.prepare("select snapshot from actors where id like '%/pr'").all();
    db.close();
    const given = (rows as { snapshot: string }[])
      .map(({ snapshot }) => JSON.parse(snapshot).context)
      .filter(({ taskId }) => taskId !== unwanted)
      .flatMap(({ taskId, taken }) =>
        taken.flatMap((each: { key: string; to: object | null }) =>
          each.to === null ? [] : [`${taskId}_${each.key}`],
        ),
      );
    const replies = state.said
      .filter(({ user, text }) => user === 'agent-bot' && text.startsWith('>'))
      .map(({ text }) => keyOf(text))
      .filter((key) => !key.startsWith(unwanted));
    const merged = state.pulls.filter((pull) => pull.merged !== null);
    process.stdout.write(
      `seed ${own}: ${merged.length} merged in ${ms} ms, ${kills} kills, ${replies.length} replies\n`,
    );
    expect
      .soft({
        batch: own,
        differences,
        unmerged: prs
          .filter(({ pull_request: pr }) => pr?.state !== 'merged')
          .map(({ pull_request }) => pull_request),
        heads: state.pulls.map(({ head }) => head).toSorted(),
        answered: replies.toSorted(),
        untested: merged.filter(({ lastSha }) => !people.passed(lastSha)),
        attemptsBeyond: prs.filter(
          ({ attempt, pull_request: pr }) => attempt > 1 + (pr?.round ?? 0),
        ),
        roundsBeyond: prs.filter(({ pull_request: pr }) => (pr?.round ?? 0) > maxRounds),
        lines: wanted.map((id) => bare.has('main', id) && bare.show('main', id).includes('line')),
      })
      .toEqual({
        batch: own,
        differences: [],
        unmerged: [],
        heads: [unwanted, ...wanted].map((id) => `agent/${id}/pr`).toSorted(),
        answered: given.toSorted(),
        untested: [],
        attemptsBeyond: [],
        roundsBeyond: [],
        lines: wanted.map(() => true),
      });
    total.kills += kills;
    total.replies += replies.length;
    for (const { pull_request: pr } of prs) total.rounds += pr.round;
  }
  const met = invoking.map((name) => `${name} ${hits.get(name) ?? 0}`).join(', ');
  process.stdout.write(
    `seed ${seed}: ${batches * perBatch} pull requests, ${total.kills} kills, met ${met}; ${total.rounds} rounds, ${total.replies} replies\n`,
  );
  expect(total.rounds).toBeGreaterThan(0);
  if (isLong) expect(invoking.filter((name) => !hits.has(name))).toEqual([]);
});
