import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import Database from 'libsql';
import { expect, test } from 'vitest';
import { createSqliteStore } from '../../src/actors/store/sqlite.ts';
import { differencesOf } from '../support/differences.ts';
import type { FakeGitHub } from '../support/forge/github.ts';
import { openForgeProject } from '../support/forge/project.ts';
import { isLong } from '../support/long.ts';
import { randomFrom, seed } from '../support/random.ts';

const batches = isLong ? 10 : 1;
const perBatch = isLong ? 10 : 2;
const maxRounds = 3;
const longestMs = 240_000;

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

/** What goes wrong at the forge. */
const faults = [
  { status: 502 },
  { status: 500 },
  { connection: 'lost' },
  { connection: 'cut' },
  { status: 403, headers: { 'retry-after': '1' }, body: { message: 'secondary rate limit' } },
] as const;

/** People and checks at the forge, for all its pull requests. */
const createPeople = (github: FakeGitHub, random: () => number) => {
  const { state, person, bare } = github;
  const tips = new Map<number, string>();
  const asked = new Map<number, number>();
  const checked = new Map<string, string>();
  const chance = (of: number): boolean => random() < of;
  const isCalm = { now: false };
  let wrong = 0;
  const check = (number: number, sha: string): void => {
    const left = maxRounds - (asked.get(number) ?? 0);
    const isRed = !isCalm.now && left > 0 && !checked.has(sha) && chance(0.3);
    if (isRed) asked.set(number, (asked.get(number) ?? 0) + 1);
    checked.set(sha, isRed ? 'failure' : 'success');
    person.check(sha, 'ci', isRed ? 'failure' : 'success', { log: '2026-11-01T00:00:00Z broken' });
  };
  const speak = (number: number): void => {
    const left = maxRounds - (asked.get(number) ?? 0);
    if (isCalm.now || left <= 0 || !chance(0.1)) return;
    asked.set(number, (asked.get(number) ?? 0) + 1);
    if (chance(0.5)) person.comment(number, 'mary', `Comment ${state.said.length}`);
    else person.review(number, 'olga', 'COMMENTED', `Review ${state.said.length}`);
  };
  return {
    calm: (): void => void Object.assign(isCalm, { now: true }),
    /** Shas whose checks passed before they were merged. */
    passed: (sha: string): boolean => checked.get(sha) === 'success',
    step: (): void => {
      if (!isCalm.now && wrong === github.faulted() && chance(0.15)) {
        wrong += 1;
        const fault = faults[Math.floor(random() * faults.length)] ?? faults[0];
        github.fault({ match: /./, ...fault });
      }
      if (!isCalm.now && chance(0.03)) bare.commit('main', `other-${state.nextId()}.txt`, 'x\n');
      for (const { number, head, state: is } of state.pulls) {
        const sha = bare.tip(head) ?? '';
        if (is !== 'open') continue;
        for (const run of state.runs)
          if (run.sha === sha && run.status === 'in_progress')
            Object.assign(run, { status: 'completed', conclusion: 'success' });
        // Not at once: so it is seen before, too.
        if (tips.get(number) === sha && !checked.has(sha) && chance(0.3)) check(number, sha);
        tips.set(number, sha);
        speak(number);
      }
    },
  };
};

const openBatch = async (start: number) => {
  const project = await openForgeProject(scripts, {
    ...{ merge: 'when_green', publish: 'when_complete', max_rounds: maxRounds },
    checks_wait_seconds: 60,
  });
  const { agent, github } = project;
  await agent('config', 'set', 'merge.verify', '["test -f a.txt"]');
  await agent('config', 'set', 'agent.on_interrupted', 'repeat');
  return { ...project, people: createPeople(github, randomFrom(start)) };
};

test(`${batches * perBatch} pull requests under faults and kills are merged once, with each comment answered once (seed ${seed})`, {
  tags: ['slow'],
  timeout: batches * longestMs * 2,
}, async () => {
  const inStates = new Set<string>();
  let kills = 0;
  let rounds = 0;
  for (let batch = 0; batch < batches; batch += 1) {
    const own = seed + batch;
    const random = randomFrom(own * 7);
    const { agent, github, people, start, stopServer, stateDir } = await openBatch(own);
    const { state, bare } = github;
    const ids: string[] = [];
    for (let each = 0; each < perBatch; each += 1)
      ids.push((await agent('create', `Task ${each}`, '--role', 'engineer')).out.trim());
    expect((await agent('run', ...ids, '--async')).code).toBe(0);
    const began = Date.now();
    const isOver = (): boolean =>
      state.pulls.length === perBatch && state.pulls.every(({ merged }) => merged !== null);
    const clock = setInterval(people.step, 100);
    while (!isOver() && Date.now() - began < longestMs) {
      await delay(500 + random() * 2_500);
      if (Date.now() - began > longestMs / 3) people.calm();
      else {
        await stopServer('SIGKILL');
        kills += 1;
        const db = new Database(join(stateDir, 'journal.db'), { readonly: true });
        const rows = db.prepare("select snapshot from actors where id like '%/pr'").all();
        db.close();
        for (const { snapshot } of rows as { snapshot: string }[])
          for (const name of JSON.stringify(JSON.parse(snapshot).value).matchAll(/[a-zA-Z]{4,}/g))
            inStates.add(name[0]);
        await start();
      }
    }
    clearInterval(clock);
    const prs = [];
    for (const id of ids) {
      const shown = JSON.parse((await agent('show', id, '--json')).out);
      rounds += shown.pull_request?.round ?? 0;
      prs.push(shown);
    }
    await stopServer();
    const store = createSqliteStore({ file: join(stateDir, 'journal.db'), redact: (text) => text });
    const differences = await differencesOf(store);
    store.close();

    const asked = state.said.filter(({ user }) => user === 'mary' || user === 'olga');
    const replies = state.said.filter(
      ({ user, text }) => user === 'agent-bot' && text.startsWith('>'),
    );
    const keysOf = (text: string): string => /agent-task-server:(\S+)/.exec(text)?.[1] ?? '';
    expect({
      batch: own,
      differences,
      unmerged: prs
        .filter(({ pull_request: pr }) => pr?.state !== 'merged')
        .map(({ pull_request }) => pull_request),
      heads: state.pulls.map(({ head }) => head).toSorted(),
      repliedTwice: replies.filter(
        ({ text }, at) => replies.findIndex((each) => keysOf(each.text) === keysOf(text)) !== at,
      ),
      untested: state.pulls.filter(({ lastSha }) => !people.passed(lastSha)),
      attemptsBeyond: prs.filter(({ attempt, pull_request: pr }) => attempt > 1 + (pr?.round ?? 0)),
      roundsBeyond: prs.filter(({ pull_request: pr }) => (pr?.round ?? 0) > maxRounds),
      lines: ids.map(
        (id) =>
          ((bare.has('main', id) ? bare.show('main', id) : '').match(/line/g)?.length ?? 0) >= 1,
      ),
    }).toEqual({
      batch: own,
      differences: [],
      unmerged: [],
      heads: ids.map((id) => `agent/${id}/pr`).toSorted(),
      repliedTwice: [],
      untested: [],
      attemptsBeyond: [],
      roundsBeyond: [],
      lines: ids.map(() => true),
    });
    // A comment that came after the last look before the merge has none.
    expect(replies.length).toBeLessThanOrEqual(asked.length);
  }
  process.stdout.write(
    `seed ${seed}: ${batches * perBatch} pull requests, ${kills} kills in ${[...inStates].toSorted().join(', ')}; ${rounds} rounds\n`,
  );
  expect(rounds).toBeGreaterThan(0);
});
