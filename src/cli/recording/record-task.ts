import { sealOf } from '../../actors/journal/prove-recording.ts';
import {
  isGap,
  type Recording,
  recordingFormat,
  recordingVersion,
} from '../../actors/journal/recording.ts';
import type { TaskView } from '../../actors/journal/task-view.ts';
import { version } from '../version.ts';
import { gatherEntries, type ReadHistory } from './gather-entries.ts';
import { readRecordingPage } from './recording-page.ts';

const entryBytesAtMost = 20 * 1024 * 1024;

export interface RecordingParts {
  readonly task: TaskView;
  readonly changes: Recording['changes'];
  /** The name of the project's folder. */
  readonly project: string;
  readonly readHistory: ReadHistory;
  readonly redact: (text: string) => string;
}

/** A task with its journal and its changes, without secrets. */
export const recordTask = async ({
  task,
  changes,
  project,
  readHistory,
  redact,
}: RecordingParts): Promise<Recording> => {
  const redacted = <Value>(value: Value): Value =>
    JSON.parse(redact(JSON.stringify(value))) as Value;
  const { items, head } = await gatherEntries(readHistory, task.task_id, {
    redact,
    bytesAtMost: entryBytesAtMost,
  });
  const sealed = {
    format: recordingFormat,
    version: recordingVersion,
    made_at: new Date().toISOString(),
    made_by: version,
    page: readRecordingPage().digest,
    project,
    task: redacted(task),
    items,
    changes: redacted(changes),
    head,
  } as const;
  return { ...sealed, seal: sealOf(sealed) };
};

export const isWhole = ({ items, changes }: Recording): boolean =>
  !items.some(isGap) && (changes?.files_left_out ?? 0) === 0;
