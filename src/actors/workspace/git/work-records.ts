import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { writeFileAtomically } from '../../files/atomic-write.ts';

export const leftOutSchema = z.strictObject({
  path: z.string().optional().describe('a file or folder'),
  ref: z.string().optional().describe("a branch, tag, stash or commit of the agent's own git"),
  reason: z.string().describe('why, or where it is'),
  bytes: z.int().nonnegative().optional().describe('its size'),
});

/** Something that an attempt left and that is not on its branch. */
export type LeftOut = z.infer<typeof leftOutSchema>;

export const workRecordSchema = z.strictObject({
  task_id: z.string(),
  attempt: z.int().positive(),
  role: z.string(),
  branch: z.string(),
  base: z.string(),
  /** The user's commit when it began; unknown for records of earlier versions. */
  head: z.string().nullable().default(null),
  /** The base of the first attempt on its branch, when it goes on with an earlier one's; else null. */
  first_base: z.string().nullable().default(null),
  /** The repository of its branch: the project's, or ours for a project without git. */
  kind: z.enum(['project', 'own']).default('project'),
  /** From earlier versions; not used any more. */
  git_dir: z.string().optional(),
  /**
   * Changes of its base that its folder began without, until a person merged them; names as latin1.
   */
  withheld: z
    .array(
      z.strictObject({
        path: z.string(),
        to: z.strictObject({ mode: z.string(), oid: z.string() }).nullable(),
      }),
    )
    .default([]),
  /**
   * Set when its base is a merge with conflict markers in these files. The base is in no history: the
   * commit of the attempt has the merged commits as parents.
   */
  resolves: z
    .strictObject({
      parents: z.tuple([z.string(), z.string()]),
      /** Names of the two sides in the markers. */
      sides: z.tuple([z.string(), z.string()]),
      paths: z.array(z.string()),
    })
    .nullable()
    .default(null),
  notes: z.array(z.string()).default([]),
  /** What is not on its branch; the notes say it, too. */
  left: z.array(leftOutSchema).default([]),
  /** Branches beside its own, with what its agent had elsewhere. */
  kept: z.array(z.strictObject({ branch: z.string(), commit: z.string() })).default([]),
  /** The work that it builds on and does not have. */
  conflicts: z
    .array(z.strictObject({ task_id: z.string(), branch: z.string(), files: z.array(z.string()) }))
    .default([]),
  /** The work of other tasks that it began with and that the project's branch did not have then. */
  includes: z
    .array(z.strictObject({ task_id: z.string(), attempt: z.int().positive(), commit: z.string() }))
    .default([]),
  /**
   * The trees of its folder around the last verification; `after` is null until all commands have
   * ended.
   */
  verified: z
    .strictObject({ before: z.string(), after: z.string().nullable() })
    .nullable()
    .default(null),
  /** Unknown for records of earlier versions. */
  complete: z.boolean().default(false),
  /** The tip of its branch when it was saved; null while it runs, and when it changed nothing. */
  commit: z.string().nullable(),
  /** True once its work is saved and its folder can go. */
  closed: z.boolean(),
  /** The commit of the project's branch that has its work, or null. */
  merged: z.string().nullable(),
  /** When it was merged (epoch ms); null when it was not, or by an earlier version. */
  merged_at: z.number().nullable().default(null),
  /** The test of exactly the tree that the branch got with it; null: nothing was tested. */
  tested: z
    .strictObject({
      commands: z.array(z.string()),
      tested_at: z.string(),
      tested_seconds: z.number(),
    })
    .nullable()
    .default(null),
  /** Set before the branch moves to this commit, so that it is noted also after a crash. */
  landing: z
    .strictObject({
      commit: z.string(),
      /** The commit of the attempt that lands. */
      tip: z.string(),
      /** Its work is taken back. */
      undoes: z.boolean(),
      commands: z.array(z.string()).nullable(),
      tested_at: z.string().optional(),
      tested_seconds: z.number().optional(),
    })
    .nullable()
    .default(null),
  /** Why it was not merged when it was last tried; null: it was not refused, or is merged by now. */
  refused: z
    .strictObject({
      at: z.number(),
      code: z.enum(['merge_conflict', 'verify_failed']),
      message: z.string(),
      with: z.array(z.string()),
      /** The command that did not pass, and the end of its output. */
      command: z.string().optional(),
      output: z.string().optional(),
      /** The files of a conflict. */
      paths: z.array(z.string()).optional(),
      /** False where it says nothing about the work, such as a file of the user in the way. */
      updatable: z.boolean().default(true),
    })
    .nullable()
    .default(null),
  /** True when its branch was pruned: the record says that its work is merged. */
  pruned: z.boolean().default(false),
  /** When a person discarded its work (epoch ms), and why. `undone`: it had landed. */
  discarded: z
    .strictObject({
      at: z.number(),
      reason: z.string().nullable(),
      undone: z.literal(true).optional(),
    })
    .nullable()
    .default(null),
  /** True while the repository that all servers reach lacks what changed here. */
  unsent: z.boolean().default(false),
  /** The size of the change; null while it runs, and for records of earlier versions. */
  size: z
    .strictObject({ files: z.int(), insertions: z.int(), deletions: z.int() })
    .nullable()
    .default(null),
});

/** Stays when the worktree is gone. */
export type WorkRecord = z.infer<typeof workRecordSchema>;

/** The commit that the work on its branch is compared with. */
export const firstBase = ({ first_base, base }: WorkRecord): string => first_base ?? base;

/**
 * The base for a merge of work that began with the work of others: those landed as commits of their own,
 * so their changes are on both sides. Null: the common history.
 */
export const mergeBase = (record: WorkRecord): string | null =>
  record.includes.length === 0 ? null : firstBase(record);

/** The commit that a branch keeps; null when the attempts on it changed nothing. */
export const keptCommit = ({ first_base, base }: WorkRecord, tip: string | null): string | null =>
  first_base === null ? (tip === base ? null : tip) : (tip ?? base);

export interface AttemptPlaces {
  readonly top: string;
  readonly agentGit: string;
  /** The index of its checkout, out of the agent's reach. */
  readonly index: string;
}

export interface WorkRecords {
  folderOf(taskId: string, attempt: number): string;
  read(taskId: string, attempt: number): Promise<WorkRecord | null>;
  latest(taskId: string): Promise<WorkRecord | null>;
  all(): Promise<readonly WorkRecord[]>;
  write(record: WorkRecord): Promise<void>;
  remove(taskId: string, attempt: number): Promise<void>;
}

/** One JSON file per attempt, beside its worktree, in the state folder. */
export const createWorkRecords = (folder: string): WorkRecords => {
  const nameOf = (taskId: string, attempt: number): string => `${taskId}@${attempt}`;
  const readFrom = async (name: string): Promise<WorkRecord | null> => {
    const text = await readFile(join(folder, name), 'utf8').catch(() => null);
    if (text === null) return null;
    const parsed = workRecordSchema.safeParse(JSON.parse(text));
    if (!parsed.success)
      throw new Error(`${join(folder, name)} is not a record of a worktree; remove it`);
    return parsed.data;
  };
  const names = async (): Promise<readonly string[]> =>
    (await readdir(folder).catch(() => [])).filter((name) => name.endsWith('.json'));
  const all = async (): Promise<readonly WorkRecord[]> =>
    (await Promise.all((await names()).map(readFrom))).flatMap((record) => record ?? []);

  return {
    folderOf: (taskId, attempt) => join(folder, nameOf(taskId, attempt)),
    read: (taskId, attempt) => readFrom(`${nameOf(taskId, attempt)}.json`),
    all,
    latest: async (taskId) => {
      const own = (await names()).filter((name) => name.startsWith(`${taskId}@`));
      const attempts = own
        .map((name) => Number.parseInt(name.slice(taskId.length + 1), 10))
        .filter(Number.isFinite);
      return attempts.length === 0
        ? null
        : readFrom(`${nameOf(taskId, Math.max(...attempts))}.json`);
    },
    write: async (record) => {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const file = join(folder, `${nameOf(record.task_id, record.attempt)}.json`);
      await writeFileAtomically(file, `${JSON.stringify(record, null, 2)}\n`);
    },
    remove: (taskId, attempt) =>
      rm(join(folder, `${nameOf(taskId, attempt)}.json`), { force: true }),
  };
};
