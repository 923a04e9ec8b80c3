import { join } from 'node:path';
import { carriedName } from '../../src/actors/workspace/travel/work-travel.ts';
import type { TaskId } from '../../src/machines/task.ts';
import { anAttempt } from '../contracts/workspace.ts';
import { gitIn, makeRepository, worktreesOf } from './git.ts';
import { serveRepository } from './git-http.ts';
import { temporaryFolder } from './temporary.ts';

export const id = 'bd-a1' as TaskId;
export const attempt = anAttempt(1);
export const key = 'the key that the store has';
export const keyed = { taskId: id, attempt: 1, key };
export const branch = carriedName(keyed);

/** A bare clone that servers share, and clones of the project with a server each. */
export const openCommon = async (kind: 'folder' | 'network') => {
  const project = makeRepository();
  const bare = join(temporaryFolder(), 'work.git');
  gitIn(project, 'clone', '--quiet', '--bare', '--no-hardlinks', project, bare);
  const address = kind === 'folder' ? bare : await serveRepository(bare);
  const serverOf = async (name: string) => {
    const root = join(temporaryFolder(), 'project');
    gitIn(project, 'clone', '--quiet', '--no-hardlinks', project, root);
    const repository = { address, server: name, env: process.env };
    const workspace = await worktreesOf(root, temporaryFolder(), [], { repository });
    if (workspace.travel === null) throw new Error('no travel');
    return { root, workspace, travel: workspace.travel };
  };
  return { project, bare, one: await serverOf('one'), two: await serverOf('two'), serverOf };
};
