import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { checkJournal, type JournalCheck } from '../../actors/store/check-journal.ts';
import { openDatabase } from '../../actors/store/database.ts';
import { exportStore, type StoreDigest } from '../../actors/store/dump/export-store.ts';
import { importStore } from '../../actors/store/dump/import-store.ts';
import { StoreError } from '../../actors/store/port.ts';
import type { Database } from '../../actors/store/rows/rows.ts';
import { plural } from '../../machines/plural.ts';
import type { CommandContext } from '../client/command-context.ts';
import { findServer } from '../client/find-server.ts';
import { loadConfig } from '../config/config.ts';
import { type StoreChoice, storeFor } from '../config/store.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { lockProject } from '../server/lock-project.ts';
import { version } from '../version.ts';
import { UsageError } from '../words/usage-error.ts';

export interface StoreArgs {
  readonly action: 'export' | 'import' | 'migrate';
  readonly file: string | undefined;
  readonly 'dry-run': boolean;
  readonly config: string | undefined;
}

const nameOf = (choice: StoreChoice): string =>
  choice.kind === 'sqlite' ? choice.file : choice.address.shown;

const open = async (choice: StoreChoice, readonly: boolean): Promise<Database> => {
  if (choice.kind === 'sqlite') {
    if (readonly && !existsSync(choice.file))
      throw new StoreError(`there is no store at ${choice.file}; nothing was ever kept there`);
    // One that an earlier version wrote gets its new tables first.
    return openDatabase({ file: choice.file });
  }
  const { openPostgresDatabase } = await import('../../actors/store/postgres/database.ts');
  return openPostgresDatabase(choice.address, { mayMigrate: !readonly });
};

const sayResult = (
  { io, json }: CommandContext,
  {
    action,
    file,
    choice,
  }: { readonly action: string; readonly file: string; readonly choice: StoreChoice },
  digests: StoreDigest,
): number => {
  const store = nameOf(choice);
  if (json) io.json({ action, file, store, tables: digests });
  else {
    const [tasks, entries] = [digests['tasks']?.rows ?? 0, digests['journal']?.rows ?? 0];
    const what = `${plural(tasks, 'task')}, ${plural(entries, 'journal entry', 'journal entries')}`;
    io.out(
      action === 'export'
        ? `wrote ${file}: ${what} of ${store}`
        : `took ${what} into ${store}; every row is as in ${file}`,
    );
  }
  return exitCodes.done;
};

const exportTo = async (
  context: CommandContext,
  choice: StoreChoice,
  file: string,
): Promise<number> => {
  if (existsSync(file)) throw new UsageError(`${file} exists; name another file`);
  if ((await findServer(context.project)) !== null)
    context.io.err(
      'note: a server runs; what it saves from now on is not in the file. To move the store, stop it first: agent server stop',
    );
  const db = await open(choice, true);
  try {
    const digests = await exportStore(db, file, version);
    return sayResult(context, { action: 'export', file, choice }, digests);
  } finally {
    db.close();
  }
};

const importFrom = async (
  context: CommandContext,
  choice: StoreChoice,
  file: string,
): Promise<number> => {
  const lock = await lockProject(context.project);
  try {
    const db = await open(choice, false);
    try {
      return sayResult(context, { action: 'import', file, choice }, await importStore(db, file));
    } finally {
      db.close();
    }
  } finally {
    lock.release();
  }
};

const migrateTables = async (
  { io, json }: CommandContext,
  choice: StoreChoice,
  isDry: boolean,
): Promise<number> => {
  if (choice.kind === 'sqlite') {
    if (json) io.json({ store: choice.file, steps: [] });
    else io.out(`${choice.file} is brought up to date whenever it is opened`);
    return exitCodes.done;
  }
  const { migrate } = await import('../../actors/store/postgres/migrate.ts');
  const { from, to, steps } = await migrate(choice.address, { isDry });
  if (json) io.json({ store: choice.address.shown, from, to, is_dry: isDry, steps });
  else if (steps.length === 0) io.out(`the tables are of version ${to}; nothing is to do`);
  else {
    if (isDry) for (const { sql } of steps) io.out(sql.trim());
    io.out(`${isDry ? 'would bring' : 'brought'} the tables from version ${from} to ${to}`);
  }
  return exitCodes.done;
};

/** @throws StoreError, ConfigError, AlreadyServedError */
export const storeCommand = async (
  context: CommandContext,
  { action, file, 'dry-run': isDry, config: configFile }: StoreArgs,
): Promise<number> => {
  const { project, env } = context;
  const { config } = loadConfig({ config: configFile, project }, env);
  const choice = storeFor(config, project, env);
  if (action === 'migrate') return migrateTables(context, choice, isDry);
  if (file === undefined) throw new UsageError(`name the file: agent store ${action} <file>`);
  const path = resolve(context.cwd, file);
  return action === 'export' ? exportTo(context, choice, path) : importFrom(context, choice, path);
};

const nothingFound: JournalCheck = { tasks: 0, entries: 0, withoutHash: 0, faults: [] };

const openJournal = async (choice: StoreChoice): Promise<Database | null> => {
  if (choice.kind === 'sqlite')
    return existsSync(choice.file) ? openDatabase({ file: choice.file, readonly: true }) : null;
  const { openPostgresDatabase } = await import('../../actors/store/postgres/database.ts');
  return openPostgresDatabase(choice.address, { mayMigrate: false });
};

const readJournal = async (choice: StoreChoice): Promise<JournalCheck> => {
  const db = await openJournal(choice);
  if (db === null) return nothingFound;
  try {
    return await checkJournal(db);
  } finally {
    db.close();
  }
};

const counted = (count: number, one: string, many: string): string =>
  `${count} ${count === 1 ? one : many}`;

/** Exit code 1 if an entry is not as it was written. @throws StoreError */
export const checkJournalCommand = async (
  { project, env, io, json }: CommandContext,
  configFile: string | undefined,
): Promise<number> => {
  const { config } = loadConfig({ config: configFile, project }, env);
  const choice = storeFor(config, project, env);
  const { tasks, entries, withoutHash, faults } = await readJournal(choice);
  if (json)
    io.json({
      file: choice.kind === 'sqlite' ? choice.file : choice.address.shown,
      tasks,
      entries,
      without_hash: withoutHash,
      faults: faults.map(({ taskId: task_id, seq, problem }) => ({ task_id, seq, problem })),
    });
  else {
    for (const { taskId, seq, problem } of faults) io.out(`${taskId}  entry ${seq} ${problem}`);
    const of = `${counted(entries, 'entry', 'entries')} of ${counted(tasks, 'task', 'tasks')}`;
    io.out(
      faults.length === 0
        ? `${of}: as they were written`
        : `${of}: ${counted(faults.length, 'fault', 'faults')}`,
    );
    if (withoutHash > 0)
      io.out(
        `${counted(withoutHash, 'entry is', 'entries are')} of version 2.1, which kept no hashes`,
      );
  }
  return faults.length === 0 ? exitCodes.done : exitCodes.failed;
};
