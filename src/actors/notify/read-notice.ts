import { shownIn } from '../journal/transition-frames.ts';
import type { Entry, EntryReads } from '../store/port.ts';
import { type Notice, type NoticeProject, type NoticeType, noticeOf } from './notice.ts';

/** Makes the notice of an entry, with the title and the cost from the task's latest view. */
export const createNoticeReader =
  (store: Pick<EntryReads, 'latest'>, project: NoticeProject) =>
  async (type: NoticeType, entry: Entry): Promise<Notice> => {
    const snapshot = await store.latest(entry.taskId, 'snapshot');
    return noticeOf(type, entry, snapshot === null ? null : shownIn(snapshot.data), project);
  };
export type ReadNotice = ReturnType<typeof createNoticeReader>;
