import { basename } from 'node:path';
import type { TaskService } from '../../actors/engine/service/task-service.ts';
import type { Recording } from '../../actors/journal/replay/recording.ts';
import { isServiceError } from '../../machines/errors.ts';
import { recordTask } from './record-task.ts';
import { asRecorded } from './recorded-changes.ts';
import { renderRecording } from './recording-document.ts';
import { readRecordingPage } from './recording-page.ts';

type ExportSource = Pick<TaskService, 'status' | 'history' | 'diff'>;

const changesOf = async (service: ExportSource, taskId: string): Promise<Recording['changes']> => {
  try {
    return asRecorded(await service.diff(taskId, null));
  } catch (error) {
    // Files that cannot be read now do not keep people from the journal.
    if (isServiceError(error)) return null;
    throw error;
  }
};

/** Makes the file of `agent export` in the server. @throws task_not_found */
export const exportFromServer =
  (service: ExportSource, projectRoot: string, redact: (text: string) => string) =>
  async (taskId: string): Promise<string> => {
    const task = await service.status(taskId);
    const recording = await recordTask({
      task,
      changes: await changesOf(service, task.task_id),
      project: basename(projectRoot),
      readHistory: ({ task_id, after_seq, limit, kept }) =>
        service.history({ taskId: task_id, after: after_seq, limit, kept }),
      redact,
    });
    return `${renderRecording(recording, readRecordingPage())}\n`;
  };
