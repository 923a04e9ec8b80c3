import { closeSync, constants, lstatSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeRealFolder } from '../../actors/files/real-folder.ts';
import { openRegular } from '../../actors/files/regular-file.ts';
import type { Ledger } from '../../actors/ledger/ledger.ts';
import { findBdData } from '../../actors/ledger/ownership.ts';
import { initializeBd } from '../../actors/tracker/bd/init.ts';
import type { CommandContext } from '../client/command-context.ts';
import { findServer } from '../client/find-server.ts';
import { hasStore, openTasks } from '../client/open-tasks.ts';
import { redactorFor } from '../client/redactor.ts';
import { loadConfig } from '../config/config.ts';
import type { Config } from '../config/schema/config-schema.ts';
import { storeFor } from '../config/store.ts';
import { bdFor } from '../config/tracker.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { UsageError } from '../words/usage-error.ts';

type WantedTracker = 'auto' | 'bd' | 'embedded';

const ignored = [
  '# issues.jsonl holds the tasks and is not ignored: commit it.',
  '# Results, work logs and output of commands. Remove this line to commit them, too.',
  '/tasks/',
  '# Files that are being written.',
  '.~*',
  '',
].join('\n');

/** Leaves a file that exists as it is. */
const writeIfNone = (file: string, text: string): boolean => {
  if (lstatSync(file, { throwIfNoEntry: false }) !== undefined) return false;
  writeFileSync(file, text, { flag: 'wx', mode: 0o644 });
  return true;
};

const initEmbedded = async ({ project, io, json }: CommandContext): Promise<number> => {
  const folder = join(project.root, '.beads');
  const file = join(folder, 'issues.jsonl');
  const ignore = join(folder, '.gitignore');
  makeRealFolder(project.root, folder);
  const already = lstatSync(file, { throwIfNoEntry: false }) !== undefined;
  closeSync(openRegular(file, constants.O_RDWR | constants.O_CREAT));
  const wrote = [...(already ? [] : [file]), ...(writeIfNone(ignore, ignored) ? [ignore] : [])];
  if (json) io.json({ tracker: 'embedded', wrote, already });
  else {
    if (already) io.out(`${file} already exists`);
    for (const path of wrote) io.out(`wrote ${path}`);
  }
  return exitCodes.done;
};

type Alone = Ledger['exchange']['alone'];

/** Everything that the tables hold goes into the file first, and nobody writes it meanwhile. */
const handOver = async <Result>(
  { project, env }: CommandContext,
  config: Config,
  isDone: boolean,
  work: (alone: Alone) => Promise<Result>,
): Promise<Result> => {
  const choice = storeFor(config, project, env);
  if (isDone || !(await hasStore(project, choice))) return work((step) => step());
  const { ledger, store } = await openTasks(project, {
    kept: true,
    choice,
    redact: redactorFor({ project, env }, config),
    log: () => {},
  });
  try {
    await ledger.exchange.refresh();
    await ledger.exchange.flush('write');
    return await work(ledger.exchange.alone);
  } finally {
    store.close();
  }
};

/**
 * Makes this folder a project: with bd where bd works, since a user who installed it and runs
 * `init` wants it; else with the built-in tracker. Shows what bd wrote, because some of it gives
 * instructions to agents.
 */
export const init = async (
  context: CommandContext,
  wanted: WantedTracker,
  configFile: string | undefined,
): Promise<number> => {
  const { project, io, env, json } = context;
  const { config } = loadConfig({ config: configFile, project }, env);
  const mode = wanted === 'auto' ? config.tracker.mode : wanted;
  if (mode === 'embedded') return initEmbedded(context);
  const bd = bdFor(config, project.root, env);
  const found = await bd.detect();
  const owned = findBdData(join(project.root, '.beads')) !== undefined;
  if (mode === 'auto' && found.state !== 'ok' && !owned) {
    if (found.state === 'broken')
      io.err(`warning: ${found.detail}; the built-in tracker keeps the tasks`);
    return initEmbedded(context);
  }
  if ((await findServer(project)) !== null)
    throw new UsageError("a server runs for this project; stop it first with 'agent server stop'");
  const { tasks, wrote, already } = await handOver(context, config, owned, (alone) =>
    initializeBd(bd, project.root, alone),
  );
  if (json) io.json({ tracker: 'bd', tasks, wrote, already });
  else {
    io.out(
      already
        ? 'bd already keeps the tasks of this project'
        : `bd keeps the tasks of this project now (${found.detail})`,
    );
    io.out(`tasks: ${tasks}`);
    for (const path of wrote) io.out(`wrote ${path}`);
    if (wrote.includes('AGENTS.md'))
      io.err('note: bd wrote AGENTS.md, which tells agents to push; read it before you commit it');
  }
  return exitCodes.done;
};
