import type { FakeGitHub } from './github.ts';

/** What goes wrong at the forge. */
const faults = [
  { status: 502 },
  { status: 500 },
  { connection: 'lost' },
  { connection: 'cut' },
  { status: 403, headers: { 'retry-after': '1' }, body: { message: 'secondary rate limit' } },
] as const;

/** At most so many of its checks fail, and people say so much, for each pull request. */
interface Limits {
  readonly asksAtMost: number;
  /** The file that the task with this pull request writes. */
  readonly fileOf: (head: string) => string;
}

/** People and checks at the forge, for all its pull requests, until they calm down. */
export const createPeople = (
  github: FakeGitHub,
  random: () => number,
  { asksAtMost, fileOf }: Limits,
) => {
  const { state, person, bare } = github;
  const tips = new Map<number, string>();
  const asked = new Map<number, number>();
  const checked = new Map<string, 'success' | 'failure'>();
  const once = new Set<string>();
  let isCalm = false;
  let wrong = 0;
  const chance = (of: number): boolean => !isCalm && random() < of;
  const mayAsk = (number: number): boolean => (asked.get(number) ?? 0) < asksAtMost;
  const ask = (number: number): void => void asked.set(number, (asked.get(number) ?? 0) + 1);

  const check = (number: number, sha: string): void => {
    const isRed = mayAsk(number) && chance(0.3);
    if (isRed) ask(number);
    const conclusion = isRed ? 'failure' : 'success';
    checked.set(sha, conclusion);
    person.check(sha, 'ci', conclusion, { log: '2026-11-01T00:00:00Z broken' });
  };
  /** Passes, and fails on the same commit right after. */
  const flake = (number: number, sha: string): void => {
    if (once.has(`flake ${number}`) || checked.get(sha) !== 'success' || !chance(0.1)) return;
    once.add(`flake ${number}`);
    checked.set(sha, 'failure');
    person.check(sha, 'ci', 'failure', { log: '2026-11-01T00:00:00Z flaky' });
  };
  /** A job that runs again passes. */
  const finishRuns = (sha: string): void => {
    for (const run of state.runs) {
      if (run.sha !== sha || run.status !== 'in_progress') continue;
      Object.assign(run, { status: 'completed', conclusion: 'success' });
      checked.set(sha, 'success');
    }
  };
  const speak = (number: number): void => {
    if (!mayAsk(number) || !chance(0.1)) return;
    ask(number);
    if (chance(0.5)) person.comment(number, 'mary', `Comment ${state.said.length}`);
    else person.review(number, 'olga', 'COMMENTED', `Review ${state.said.length}`);
  };
  const push = (number: number, head: string): void => {
    if (once.has(`push ${number}`) || !chance(0.03)) return;
    once.add(`push ${number}`);
    bare.commit(head, `person-${number}.txt`, 'x\n');
  };
  const moveMain = (): void => {
    if (chance(0.02)) bare.commit('main', `other-${state.nextId()}.txt`, 'x\n');
    const open = state.pulls.find((pull) => pull.state === 'open' && mayAsk(pull.number));
    if (open === undefined || !chance(0.01)) return;
    // A conflict takes a round, too.
    ask(open.number);
    bare.commit('main', fileOf(open.head), `of others ${state.nextId()}\n`);
  };

  return {
    calm: (): void => {
      isCalm = true;
    },
    /** Its checks passed when they ran last. */
    passed: (sha: string): boolean => checked.get(sha) === 'success',
    step: (): void => {
      if (wrong === github.faulted() && chance(0.15)) {
        wrong += 1;
        const fault = faults[Math.floor(random() * faults.length)] ?? faults[0];
        github.fault({ match: /./, ...fault });
      }
      moveMain();
      for (const { number, head, state: is } of state.pulls) {
        const sha = bare.tip(head) ?? '';
        if (is !== 'open') continue;
        finishRuns(sha);
        flake(number, sha);
        // Not at once: so it is seen before, too.
        if (tips.get(number) === sha && !checked.has(sha) && random() < 0.3) check(number, sha);
        tips.set(number, sha);
        speak(number);
        push(number, head);
      }
    },
  };
};
