import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { isLong } from '../support/long.ts';
import { describeUnless, noStrace } from '../support/needs.ts';
import { type Answer, type DrivenWorkspace, driveWorkspaces } from './support/driven-workspace.ts';
import { hostileGitDirs, hostileLogs } from './support/hostile-git-dirs.ts';
import { hostileConfiguration, hostileFilters } from './support/hostile-settings.ts';
import {
  conversions,
  filtersByName,
  linksAway,
  nestedRepositories,
  oddTrees,
  swapped,
  trapOfAnEarlierAttempt,
} from './support/hostile-trees.ts';
import { git, makePlan, type Plan, put } from './support/plan.ts';
import type { Recorded } from './support/recording.ts';
import { type Tree, treeOfCommit, treeOfFolder } from './support/trees.ts';
import { together, type Vector, type Vectors } from './support/vector.ts';

const gits = new Set([
  '/usr/bin/git',
  join(execFileSync('git', ['--exec-path'], { encoding: 'utf8' }).trim(), 'git'),
]);

/**
 * What git may open in the user's git dir; all else there is settings, hooks, or another
 * repository.
 */
const known =
  /^(?:config|config\.worktree|HEAD|HEAD\.lock|index|index\.lock|shallow|packed-refs.*|(?:objects|refs|logs)(?:\/.*)?)?$/;

interface Deeds {
  readonly started: readonly string[];
  readonly connected: readonly string[];
  readonly outsideOpened: readonly string[];
  readonly openedByGit: readonly string[];
  readonly marks: string;
}

const nothing: Deeds = {
  started: [],
  connected: [],
  outsideOpened: [],
  openedByGit: [],
  marks: '',
};

/** What was done that must not be done, of all that a workspace and its children did. */
const deedsOf = (
  recorded: readonly Recorded[],
  { outside, gitDir, marks }: Plan,
  roots: readonly string[],
): Deeds => {
  const told = (each: Recorded): string => `${each.during}: ${each.by} ${each.what}`;
  const opened = recorded.filter(({ kind }) => kind === 'open');
  const byGit = opened.filter(({ by }) => by !== 'server');
  const inFolder = byGit.filter(
    ({ what, during }) => during !== 'open' && roots.some((root) => what.startsWith(`${root}/`)),
  );
  const inGitDir = byGit.filter(
    ({ what }) => what.startsWith(`${gitDir}/`) && !known.test(what.slice(gitDir.length + 1)),
  );
  const once = (all: readonly Recorded[]): readonly string[] => [...new Set(all.map(told))];
  return {
    started: once(recorded.filter(({ kind, what }) => kind === 'start' && !gits.has(what))),
    connected: once(recorded.filter(({ kind }) => kind === 'connect')),
    outsideOpened: once(opened.filter(({ what }) => what.startsWith(`${outside}/`))),
    openedByGit: once([...inFolder, ...inGitDir]),
    marks: marks(),
  };
};

/** The words of a refusal in an answer, or null. */
const refusalIn = (answer: Answer<unknown>): string | null => {
  if ('error' in answer) return answer.error;
  const { value } = answer;
  if (typeof value !== 'object' || value === null || !('why' in value)) return null;
  return `${value.why} ${'files' in value ? value.files : ''}`;
};

const isBelow = (names: readonly string[]) => (path: string) =>
  names.some((name) => path === name || path.startsWith(`${name}/`));

const work = (folder: string): void => {
  put(folder, { 'a.txt': 'one\ntwo\nchanged\n', 'new/file.txt': 'new\n' });
};

/** The answers of a whole attempt, until one refuses. */
const attempt = async (vector: Vector, plan: Plan, driven: DrivenWorkspace) => {
  const answers: Answer<unknown>[] = [];
  const roots: string[] = [];
  let [expected, saved]: [Tree, Tree | null] = [new Map(), null];
  const opened = await driven.open(1);
  answers.push(opened);
  if ('value' in opened) {
    const { root } = opened.value;
    roots.push(root);
    work(root);
    vector.agent?.(root, plan);
    const stop = vector.meanwhile?.(root, plan);
    expected = treeOfFolder(root, isBelow(['.git', ...(vector.notSaved ?? [])]));
    answers.push(await driven.diff(1));
    const kept = await driven.save(1);
    stop?.();
    answers.push(kept, await driven.diff(1), await driven.merge(1, 'squash'));
    if ('value' in kept && kept.value !== null)
      saved = treeOfCommit(plan.gitDir, kept.value.commit);
  }
  return { answers, roots, expected, saved };
};

const overlaid = (tree: Tree, savedAs: Vector['savedAs'] = {}): Tree => {
  const hashes = Object.entries(savedAs).map(
    ([path, text]) =>
      [path, `100644 ${git('/', ['hash-object', '--stdin', '--no-filters'], text)}`] as const,
  );
  return new Map([...tree, ...hashes]);
};

const judgeAnswers = (
  vector: Vector,
  plan: Plan,
  { answers, expected, saved }: Awaited<ReturnType<typeof attempt>>,
): void => {
  const refusals = answers.map(refusalIn).filter((words) => words !== null);
  onTestFinished(({ task }) => {
    Object.assign(task.meta, { happened: refusals[0] });
  });
  const { mayBeRefused } = vector;
  const unexpected = refusals.filter(
    (words) => mayBeRefused === undefined || !mayBeRefused.test(words),
  );
  if (vector.refused === undefined) expect(unexpected).toEqual([]);
  else expect(refusals.join('\n')).toMatch(vector.refused);
  if (answers.length === 1) return;
  const without = isBelow(vector.notSaved ?? []);
  const files = new Map([...(saved ?? [])].filter(([path]) => !without(path)));
  expect(files).toEqual(overlaid(expected, vector.savedAs));
  for (const words of vector.said ?? []) expect(JSON.stringify(answers)).toMatch(words);
  if (refusals.length > 0) return;
  const merged = treeOfFolder(plan.project, isBelow(['.git', ...(vector.notSaved ?? [])]));
  const asUser = Object.entries(vector.merged ?? {}).map(([path]) => path);
  for (const [path, bytes] of Object.entries(vector.merged ?? {}))
    expect([path, readFileSync(join(plan.project, path))]).toEqual([path, bytes]);
  const same = (tree: Tree) => new Map([...tree].filter(([path]) => !asUser.includes(path)));
  expect(same(merged)).toEqual(same(files));
};

/** Each in a project of its own, one after the other, and all in one recorded process. */
const judge = async (vectors: Vectors): Promise<void> => {
  const driver = driveWorkspaces();
  const attempts: { plan: Plan; roots: readonly string[]; before: Tree; title: string }[] = [];
  for (const [title, vector] of Object.entries(vectors)) {
    const plan = makePlan();
    vector.plant?.(plan);
    const before = treeOfFolder(plan.outside);
    const made = await attempt(vector, plan, driver.of(plan.project, plan.state));
    judgeAnswers(vector, plan, made);
    attempts.push({ plan, roots: made.roots, before, title });
  }
  const recorded = await driver.end();
  for (const { plan, roots, before, title } of attempts) {
    expect(deedsOf(recorded, plan, roots), title).toEqual(nothing);
    expect(treeOfFolder(plan.outside), title).toEqual(before);
  }
};

const each = (vectors: Vectors): readonly [string, Vectors][] =>
  Object.entries(vectors).map(([title, vector]) => [title, { [title]: vector }]);
const titled = (vectors: Vectors) => each(isLong ? vectors : together(vectors));
/** In the short form they share a process: to start one takes longer than a refusal. */
const inTurn = (vectors: Vectors): readonly [string, Vectors][] =>
  isLong || process.env['AGENT_TEST_SECURITY'] === '1'
    ? each(vectors)
    : [[`${Object.keys(vectors).length} in turn`, vectors]];
const limit = 120_000;

describeUnless(noStrace)('git starts no other program', () => {
  test.each(titled(hostileConfiguration))(
    'when the settings name programs: %s',
    (_, vectors) => judge(vectors),
    limit,
  );
  test.each(titled(nestedRepositories))(
    'when agents make repositories: %s',
    (_, vectors) => judge(vectors),
    limit,
  );
  test.each(titled(oddTrees))(
    'when agents leave odd files: %s',
    { tags: ['slow'], timeout: limit },
    (_, vectors) => judge(vectors),
  );
  test.each(inTurn({ ...conversions, ...swapped }))(
    'and the work is saved: %s',
    { tags: ['slow'], timeout: limit },
    (_, vectors) => judge(vectors),
  );
  test.each(inTurn(hostileGitDirs))(
    'when the git dir is refused: %s',
    (_, vectors) => judge(vectors),
    limit,
  );
  test.each(inTurn({ ...hostileLogs, ...hostileFilters, ...filtersByName, ...linksAway }))(
    'when the merge is refused or done: %s',
    { tags: ['slow'], timeout: limit },
    (_, vectors) => judge(vectors),
  );

  test('in a folder that an earlier attempt made a repository of', {
    tags: ['slow'],
  }, async () => {
    const plan = makePlan();
    const driver = driveWorkspaces();
    const driven = driver.of(plan.project, plan.state);
    const roots: string[] = [];
    const answers: Answer<unknown>[] = [];
    for (const [index, agent] of [
      trapOfAnEarlierAttempt.first,
      trapOfAnEarlierAttempt.second,
    ].entries()) {
      const opened = await driven.open(index + 1);
      if ('error' in opened) throw new Error(opened.error);
      roots.push(opened.value.root);
      agent(opened.value.root, plan);
      answers.push(
        await driven.diff(index + 1),
        await driven.save(index + 1),
        await driven.merge(index + 1, 'ff'),
      );
    }

    const deeds = deedsOf(await driver.end(), plan, roots);

    expect(deeds).toEqual(nothing);
    expect(answers.map(refusalIn).filter(Boolean)).toEqual([]);
    const { project } = plan;
    expect(git(project, ['ls-files', '--stage', 'later']).replace(/ [0-9a-f]{40} /g, ' ')).toBe(
      '100644 0\tlater/a.txt\n100644 0\tlater/b.txt\n100755 0\tlater/program',
    );
    expect(git(project, ['status', '--porcelain'])).toBe('');
  });
});
