import { z } from 'zod';
import type { KeptEntry } from '../../store/port.ts';
import type { TaskView } from '../task-view.ts';

/** The end of the time that a Date can show (ms). */
const latestTime = 8_640_000_000_000_000;
const hash = z.string().regex(/^[0-9a-f]{64}$/);
const countSchema = z.int().nonnegative();

/** An entry as `history` with `kept: true` gives it. */
const entrySchema = z.strictObject({
  task_id: z.string(),
  task_seq: countSchema,
  seq: z.int().positive(),
  attempt: countSchema,
  type: z.string(),
  at: countSchema.max(latestTime),
  data: z.string(),
  cause: z.string().nullable(),
  base: z.int().positive().nullable(),
  previous: z.union([hash, z.literal('')]).nullable(),
  hash: hash.nullable(),
});
export type RecordedEntry = Omit<KeptEntry, 'taskId' | 'taskSeq'> & {
  readonly task_id: string;
  readonly task_seq: number;
};

/** Entries that are not in the file. */
const gapSchema = z.strictObject({
  /** `removed`: the server had removed them before. */
  why: z.enum(['size', 'secret', 'removed']),
  entries: countSchema,
  transitions: countSchema,
  bytes: countSchema,
  /** Seq and hash of the last of them. */
  through_seq: z.int().positive(),
  hash: hash.nullable(),
});
export type Gap = Readonly<z.infer<typeof gapSchema>>;
export type RecordedItem = RecordedEntry | Gap;

export const isGap = (item: RecordedItem): item is Gap => 'why' in item;

export const recordingFormat = 'agent-task-recording';
export const recordingVersion = 1;

export const recordingSchema = z.strictObject({
  format: z.literal(recordingFormat),
  version: z.literal(recordingVersion),
  made_at: z.iso.datetime(),
  /** Version of the program. */
  made_by: z.string().max(100),
  /** Digest of the script and the styles of the page. */
  page: hash,
  /** Name of the project's folder. */
  project: z.string().max(1_000),
  task: z.looseObject({ task_id: z.string(), title: z.string(), status: z.string() }),
  items: z.array(z.union([entrySchema, gapSchema])),
  changes: z
    .strictObject({
      attempt: countSchema,
      patch: z.string(),
      guarded: z.array(z.string()),
      /** Files of the patch that are not in the recording. */
      files_left_out: countSchema,
    })
    .nullable(),
  /** The last entry and how many there were; null without a journal. */
  head: z
    .strictObject({ seq: z.int().positive(), entries: countSchema, hash: hash.nullable() })
    .nullable(),
  /** SHA-256 (hex) of the JSON text of all fields above. */
  seal: hash,
});

/** A task with its journal, in an exported file. */
export interface Recording
  extends Readonly<Omit<z.infer<typeof recordingSchema>, 'task' | 'items'>> {
  readonly task: TaskView;
  readonly items: readonly RecordedItem[];
}
