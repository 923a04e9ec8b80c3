import { existsSync } from 'node:fs';
import { checkJournal, type JournalCheck } from '../../actors/store/check-journal.ts';
import { openDatabase } from '../../actors/store/database.ts';
import type { Database } from '../../actors/store/rows/rows.ts';
import type { CommandContext } from '../client/command-context.ts';
import { loadConfig } from '../config/config.ts';
import { type StoreChoice, storeFor } from '../config/store.ts';
import { exitCodes } from '../output/exit-codes.ts';

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
