import { existsSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createSqliteStore } from '../../../src/actors/store/sqlite.ts';
import { openProject } from '../../support/cli.ts';
import { differencesOf } from '../../support/differences.ts';
import { clientOf } from './client.ts';

const turn = (tool: string, args: object) => ({ calls: [{ tool, arguments: args }] });
const finish = turn('finish', { status: 'done', summary: 'done' });
const scriptsIn = (root: string): object => {
  const work = `cd ${root}; echo $ATS_ATTEMPT >> log; touch at-work; until [ -e go ]; do sleep 0.02; done`;
  return [
    { title: 'asks', turns: [turn('ask', { question: 'red or blue?' }), finish] },
    {
      title: 'works',
      turns: [turn('bash', { command: work }), turn('bash', { command: 'true' }), finish],
    },
    { turns: [finish] },
  ];
};

/** A project whose tasks do what their title says; two run at once. */
export const openWork = (more: object = {}) => {
  const project = openProject(undefined, { ownServer: true });
  const script = join(dirname(project.configFile), 'script.json');
  writeFileSync(script, JSON.stringify({ scripts: scriptsIn(project.root) }));
  const config = {
    server: { port: 0, register_protocol_handler: false, max_concurrent_agents: 1 },
    sandbox: { mode: 'off' },
    api: { backend: 'scripted', script },
    tracker: { mode: 'embedded' },
    agent: { on_interrupted: 'repeat' },
    ...more,
  };
  writeFileSync(project.configFile, JSON.stringify(config));

  return {
    ...project,
    /** Waits until the task that works is at its work. */
    atWork: async (): Promise<void> => {
      while (!existsSync(join(project.root, 'at-work'))) await delay(20);
    },
    serve: async (env: NodeJS.ProcessEnv = {}) => {
      const child = project.start('agent-server', ['--server'], env);
      const client = await clientOf(project, child.pid);
      return {
        ...client,
        pid: child.pid ?? 0,
        create: async <const Titles extends readonly string[]>(...titles: Titles) => {
          const made = [];
          for (const description of titles)
            made.push((await client.call('create', { description })).result?.task_id);
          return made as { readonly [Index in keyof Titles]: string };
        },
        run: (task_id: string, options: object = {}) =>
          client.call('execute', { task_id, role: 'engineer', options }),
        goOn: () => writeFileSync(join(project.root, 'go'), ''),
      };
    },
  };
};

/**
 * How the saved states of a server that has ended differ from what its journal makes of them, and
 * its gaps.
 */
export const differencesIn = async (
  stateDir: string,
): Promise<{ entries: number; differences: readonly string[] }> => {
  const store = createSqliteStore({ file: join(stateDir, 'journal.db'), redact: (text) => text });
  const entries = store.read({ after: 0, limit: 1_000_000 });
  const gaps = entries
    .filter(({ seq }, index) => seq !== index + 1)
    .map(({ seq }) => `a gap before entry ${seq}`);
  const differences = await differencesOf(store);
  store.close();
  return { entries: entries.length, differences: [...gaps, ...differences] };
};
