import type { Journal } from '../journal/journal.ts';
import { type CommandResult, runCommand } from '../process/run-command.ts';
import type { Entry } from '../store/port.ts';
import { type NoticeType, noticeTypeOf } from './notice.ts';
import type { ReadNotice } from './read-notice.ts';

export interface Hook {
  readonly argv: readonly [string, ...string[]];
  readonly events: ReadonlySet<NoticeType>;
  readonly timeoutMs: number;
}

export interface HookOptions {
  readonly hooks: readonly Hook[];
  readonly journal: Pick<Journal, 'onCommit'>;
  readonly readNotice: ReadNotice;
  readonly cwd: string;
  /** The whole environment of a hook. */
  readonly environment: Readonly<Record<string, string>>;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

const hooksAtOnce = 4;
const hooksWaitingAtMost = 200;
const hookOutputBytes = 1_000;

interface HookRun {
  readonly hook: Hook;
  readonly type: NoticeType;
  readonly entry: Entry;
}

const callsFor =
  (hooks: readonly Hook[]) =>
  (entry: Entry): readonly HookRun[] => {
    const type = noticeTypeOf(entry);
    if (type === null) return [];
    return hooks.filter(({ events }) => events.has(type)).map((hook) => ({ hook, type, entry }));
  };

const hookProblem = ({ exitCode, timedOut }: CommandResult, { timeoutMs }: Hook): string | null => {
  if (timedOut) return `it was ended after ${timeoutMs / 1_000} s`;
  if (exitCode === null) return 'it could not be started';
  return exitCode === 0 ? null : `it ended with exit code ${exitCode}`;
};

/**
 * Runs the user's programs for events of tasks, four at once. An event is given once; a restart
 * does not repeat it. No task waits for a hook.
 */
export const startHooks = (options: HookOptions): { stop(): Promise<void> } => {
  const { hooks, journal, readNotice, cwd, environment, log } = options;
  const stopping = new AbortController();
  const running = new Set<Promise<void>>();
  let waiting: readonly HookRun[] = [];

  const run = async ({ hook, type, entry }: HookRun): Promise<void> => {
    const about = { task_id: entry.taskId, attempt: entry.attempt, event: type };
    const program = hook.argv[0];
    try {
      const notice = await readNotice(type, entry);
      const result = await runCommand({
        argv: hook.argv,
        cwd,
        env: environment,
        stdin: Buffer.from(`${JSON.stringify(notice)}\n`),
        timeoutMs: hook.timeoutMs,
        signal: stopping.signal,
        headBytes: hookOutputBytes,
        tailBytes: hookOutputBytes,
      });
      const problem = result.aborted ? null : hookProblem(result, hook);
      if (problem !== null)
        log('a command for an event failed', { ...about, program, problem, output: result.output });
    } catch (error) {
      log('a command for an event failed', { ...about, program, error });
    }
  };
  const fill = (): void => {
    while (running.size < hooksAtOnce && waiting.length > 0 && !stopping.signal.aborted) {
      const [next, ...rest] = waiting;
      if (next === undefined) return;
      waiting = rest;
      const one = run(next).finally(() => {
        running.delete(one);
        fill();
      });
      running.add(one);
    }
  };
  const callsOf = callsFor(hooks);
  const leave = journal.onCommit((entries) => {
    const calls = entries.flatMap(callsOf);
    if (calls.length === 0) return;
    const all = [...waiting, ...calls];
    waiting = all.slice(0, hooksWaitingAtMost);
    for (const { type, entry, hook } of all.slice(hooksWaitingAtMost))
      log('skipped a command for an event: too many are waiting', {
        ...{ task_id: entry.taskId, attempt: entry.attempt, event: type, program: hook.argv[0] },
      });
    fill();
  });
  return {
    stop: async () => {
      leave();
      stopping.abort();
      await Promise.all(running);
    },
  };
};
