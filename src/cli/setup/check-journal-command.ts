import { existsSync } from 'node:fs';
import { checkJournal, type JournalCheck } from '../../actors/store/check-journal.ts';
import { openDatabase } from '../../actors/store/database.ts';
import type { CommandContext } from '../client/command-context.ts';
import { taskFiles } from '../config/project.ts';
import { exitCodes } from '../output/exit-codes.ts';

const nothingFound: JournalCheck = { tasks: 0, entries: 0, withoutHash: 0, faults: [] };

const readJournal = async (file: string): Promise<JournalCheck> => {
  if (!existsSync(file)) return nothingFound;
  const db = openDatabase({ file, readonly: true });
  try {
    return await checkJournal(db);
  } finally {
    db.close();
  }
};

const counted = (count: number, one: string, many: string): string =>
  `${count} ${count === 1 ? one : many}`;

/** Exit code 1 if an entry is not as it was written. @throws StoreError */
export const checkJournalCommand = async ({
  project,
  io,
  json,
}: CommandContext): Promise<number> => {
  const file = taskFiles(project).journal;
  const { tasks, entries, withoutHash, faults } = await readJournal(file);
  if (json)
    io.json({
      file,
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
