import type { Change } from '../../src/actors/store/port.ts';
import { loadConfig } from '../../src/cli/config/config.ts';
import { findProject, taskFiles } from '../../src/cli/config/places/project.ts';
import { openSqliteFile, runServer } from '../../src/cli/server/run-server.ts';

/**
 * `agent-server --server` that is killed before or after it commits a state. Arguments: `before` or
 * `after`, and the value of the state as JSON.
 */
const [moment, state] = process.argv.slice(2);
const project = findProject(undefined, process.cwd(), process.env);

const reaches = ({ actor }: Change): boolean =>
  actor !== undefined && JSON.stringify(JSON.parse(actor.snapshot).value) === state;

const killIf = (isTime: boolean): void => {
  if (isTime) process.kill(process.pid, 'SIGKILL');
};

await runServer({
  project,
  load: () => loadConfig({ project }, process.env),
  env: process.env,
  inspect: false,
  drainMs: 0,
  onLeaseLost: () => process.exit(1),
  open: (parts) => {
    const { store, ...opened } = openSqliteFile(taskFiles(project).journal, parts);
    const commit: typeof store.commit = (...changes) => {
      const isTime = changes.some(reaches);
      killIf(isTime && moment === 'before');
      const committed = store.commit(...changes);
      killIf(isTime && moment === 'after');
      return committed;
    };
    return { ...opened, store: { ...store, commit } };
  },
});
