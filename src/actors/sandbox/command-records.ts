import { existsSync, readdirSync, readFileSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { messageOf } from '../../machines/message-of.ts';
import { writeFileAtomically } from '../files/atomic-write.ts';
import { hasCode } from '../files/error-code.ts';
import { makeFolderDurably } from '../files/real-folder.ts';

const ids = z.array(z.string()).transform((list): ReadonlySet<string> => new Set(list));

const folderEntrySchema = z.strictObject({
  path: z.string(),
  holder: z.string(),
  kind: z.enum(['file', 'folder', 'link', 'other']),
  id: z.string(),
  target: z.string().nullable(),
});

const recordSchema = z.strictObject({
  root: z.string(),
  /** Device and inode of the root. */
  rootId: z.string(),
  before: z.strictObject({
    entries: z.array(folderEntrySchema).readonly(),
    isWhole: z.boolean(),
    folders: ids,
    closed: ids,
    newFolders: z.array(z.string()).readonly(),
  }),
  made: ids.nullable(),
  attempt: z.string().optional(),
});

/** The content of a shared folder before a command. */
export type CommandRecord = Readonly<z.output<typeof recordSchema>>;

/** Kept from before each command until what it made has been moved away; outlives the server. */
export interface CommandRecords {
  /** On disk when it resolves. The mark is that of the command's processes. */
  keep(mark: string, record: CommandRecord): Promise<void>;
  /** @throws a system error when the record stays */
  forget(mark: string): void;
  has(mark: string): boolean;
  file(mark: string): string;
  readAll(): readonly {
    readonly mark: string;
    readonly record: CommandRecord | { readonly fault: string };
  }[];
}

const suffix = '.json';

const readRecord = (file: string): CommandRecord | { readonly fault: string } => {
  try {
    return recordSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    return { fault: error instanceof z.ZodError ? 'it has another form' : messageOf(error) };
  }
};

const namesIn = (folder: string): readonly string[] => {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return [];
    throw error;
  }
};

export const createCommandRecords = (folder: string): CommandRecords => {
  const file = (mark: string): string => join(folder, `${mark}${suffix}`);
  return {
    file,
    keep: async (mark, record) => {
      makeFolderDurably(folder);
      const asLists = (_: string, value: unknown): unknown =>
        value instanceof Set ? [...value] : value;
      await writeFileAtomically(file(mark), JSON.stringify(record, asLists));
    },
    forget: (mark) => {
      try {
        unlinkSync(file(mark));
      } catch (error) {
        if (!hasCode(error, 'ENOENT')) throw error;
      }
    },
    has: (mark) => existsSync(file(mark)),
    readAll: () =>
      namesIn(folder)
        .filter((name) => name.endsWith(suffix) && !name.startsWith('.'))
        .map((name) => name.slice(0, -suffix.length))
        .map((mark) => ({ mark, record: readRecord(file(mark)) })),
  };
};

/** For a process that runs no command in a folder of the user. */
export const noCommandRecords: CommandRecords = {
  keep: async () => {},
  forget: () => {},
  has: () => false,
  file: (mark) => mark,
  readAll: () => [],
};
