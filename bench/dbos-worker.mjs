// A process of DBOS Transact that runs null tasks: a workflow with one step. Started by `servers.mjs`.
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [folder, url, name] = process.argv.slice(2);
const { DBOS } = createRequire(join(folder, 'package.json'))('@dbos-inc/dbos-sdk');
DBOS.setConfig({
  ...{ name: 'bench', systemDatabaseUrl: url, runAdminServer: false, logLevel: 'error' },
  ...{ applicationVersion: 'one', executorID: name },
});
DBOS.registerWorkflow(
  async (ms) =>
    DBOS.runStep(
      async () => {
        const at = Date.now();
        if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
        return at;
      },
      { name: 'null' },
    ),
  { name: 'task' },
);
await DBOS.launch();
await DBOS.registerQueue('tasks', {
  ...{ globalConcurrency: 32, workerConcurrency: 8, minPollingIntervalMs: 100 },
});
console.log('ready');
