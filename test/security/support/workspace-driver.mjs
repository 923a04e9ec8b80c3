// Serves the public Workspace to a test in another process, so that this one can run under strace:
// a JSON line in, one out.
import { closeSync, openSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { childEnvironment } from '../../../dist/actors/process/run-command.js';
import { chooseWorkspace } from '../../../dist/actors/workspace/worktrees/select-workspace.js';
import { landAlone } from '../../support/land-alone.mjs';

const opened = new Map();

const workspaceOf = async ({ projectRoot, folder, repository }) => {
  const environment = childEnvironment(process.env);
  const known = opened.get(projectRoot);
  if (known !== undefined) return known;
  const workspace = await chooseWorkspace({
    mode: 'worktree',
    projectRoot,
    folder,
    copies: [],
    environment,
    ...(repository && { repository: { ...repository, env: process.env } }),
  });
  opened.set(projectRoot, workspace);
  return workspace;
};

const key = 'of the store';

const calls = {
  open: (workspace, { attempt, after }) => workspace.open(attempt, after),
  diff: (workspace, { attempt }) => workspace.diff(attempt.taskId, attempt.attempt),
  save: (workspace, { attempt }) => workspace.save(attempt, 'Work'),
  keep: (workspace, { attempt, step }) => workspace.travel.keep({ ...attempt, key }, step),
  take: (workspace, { attempt }) => workspace.travel.take(attempt, key),
  merge: (workspace, { attempt, mode }) =>
    landAlone(workspace, attempt.taskId, attempt.attempt, mode, 'Work'),
};

/** Writes the name of a call into the recording: the file is not there. */
const note = (name) => {
  try {
    closeSync(openSync(`/call/${name}`));
  } catch {}
};

for await (const line of createInterface({ input: process.stdin })) {
  const { call, ...order } = JSON.parse(line);
  note(call);
  let answer;
  try {
    const workspace = await workspaceOf(order);
    if (workspace.mode === 'shared') throw new Error(`no worktree: ${workspace.describe()}`);
    answer = { value: await calls[call](workspace, order) };
  } catch (error) {
    answer = { error: error instanceof Error ? error.message : String(error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
