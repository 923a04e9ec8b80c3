import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ServiceError } from '../../../machines/errors.ts';
import { countTasksInFile } from '../../ledger/ownership.ts';
import { type BdCalls, bdUnavailable, defaultBdLimits } from './calls.ts';
import { issuesIn } from './issues.ts';

export interface Initialized {
  readonly tasks: number;
  /** New paths that bd wrote, relative to the project. */
  readonly wrote: readonly string[];
  /** True when bd kept the project's tasks before. */
  readonly already: boolean;
}

const listing = (root: string): ReadonlySet<string> => {
  const names = (folder: string): readonly string[] => {
    try {
      return readdirSync(join(root, folder)).map((name) => join(folder, name));
    } catch {
      return [];
    }
  };
  return new Set([...names('.'), ...names('.beads')]);
};

const shortLine = (text: string): string => text.replace(/\s+/g, ' ').trim().slice(0, 300);

/**
 * Makes bd the tracker of a project, only when the user asks: `bd init --prefix=bd` without hooks,
 * with the tasks of `.beads/issues.jsonl`, while `alone` keeps our own processes from writing it.
 * Success means that bd lists the tasks afterwards. @throws tracker_unavailable
 */
export const initializeBd = async (
  calls: BdCalls,
  projectRoot: string,
  alone: <Result>(work: () => Promise<Result>) => Promise<Result>,
): Promise<Initialized> => {
  const can = await calls.capabilities();
  const before = listing(projectRoot);
  const expected = countTasksInFile(projectRoot);
  const args = [
    'init',
    '--prefix=bd',
    '--quiet',
    '--skip-hooks',
    ...(expected > 0 && can.initFromJsonl ? ['--from-jsonl'] : []),
    ...(can.initSkipAgents ? ['--skip-agents'] : []),
    ...(can.initNonInteractive ? ['--non-interactive'] : []),
  ];
  const initialize = () =>
    calls.alone('interactive', async (run) => {
      const began = await run({ args, effect: 'once', timeoutMs: defaultBdLimits.initMs });
      // It prints nothing when it is quiet and succeeds; a second `init` says so and exits with 1.
      const listed = await run({ args: ['list', '--all', '--json', '--limit=0'], effect: 'read' });
      const already =
        'failure' in began && /already initialized|existing database/i.test(began.failure.words);
      if ('failure' in listed)
        throw bdUnavailable('failure' in began && !already ? began.failure : listed.failure);
      return { tasks: issuesIn(listed.value, () => {}).length, already };
    });
  const done = await alone(initialize);
  if (done.tasks < expected)
    throw new ServiceError('tracker_unavailable', {
      detail: `bd lists ${done.tasks} tasks, but .beads/issues.jsonl holds ${expected}`,
      remedy: shortLine(
        "nothing is lost; import them with 'bd import -i .beads/issues.jsonl' (from 0.50 on: 'bd import .beads/issues.jsonl')",
      ),
    });
  const wrote = [...listing(projectRoot)].filter(
    (path) => !before.has(path) && !path.endsWith('.lock'),
  );
  return { ...done, wrote };
};
