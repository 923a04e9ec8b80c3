import { existsSync } from 'node:fs';
import { issuesFileOf } from '../../actors/ledger/issues-file.ts';
import { type Ledger, type LedgerOptions, openLedger } from '../../actors/ledger/ledger.ts';
import { openDatabase, type SqliteDatabase } from '../../actors/store/database.ts';
import type { Store } from '../../actors/store/port.ts';
import { type Project, stateFiles, taskFiles } from '../config/project.ts';
import { keepOwner } from '../server/lock-project.ts';
import { ensurePrivateFolder, StateFolderError } from '../server/private-files.ts';

export interface OpenedTasks {
  readonly ledger: Ledger;
  readonly store: Store;
}

/** True when a command could read something. */
export const hasTasks = (project: Project): boolean =>
  existsSync(taskFiles(project).journal) || existsSync(issuesFileOf(project.root));

/** A state folder that cannot be written can still be read. */
const openKept = async (project: Project): Promise<SqliteDatabase> => {
  try {
    ensurePrivateFolder(project.stateDir);
    await keepOwner(stateFiles(project.stateDir).owner, project.root);
  } catch (error) {
    const { journal } = taskFiles(project);
    if (!(error instanceof StateFolderError) || !existsSync(journal)) throw error;
    return openDatabase({ file: journal, readonly: true });
  }
  return openDatabase({ file: taskFiles(project).journal });
};

/**
 * Opens the project's database for a command without a server. With `kept` false it is one in
 * memory, which ends with the command: a look at a folder without tasks leaves nothing behind.
 * @throws StoreError, PrivateFileError, StateFolderError
 */
export const openTasks = async (
  project: Project,
  {
    kept,
    ...told
  }: { readonly kept: boolean } & Pick<LedgerOptions, 'redact' | 'log' | 'onProgress'>,
): Promise<OpenedTasks> => {
  const db = kept ? await openKept(project) : openDatabase({ file: ':memory:' });
  return openLedger({ db, projectRoot: project.root, clock: Date.now, ...told });
};
