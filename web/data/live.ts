import { readDetails, readWorkOfEnded } from './details.ts';
import type { Frame } from './frame.ts';
import { session } from './session.ts';
import { followStream } from './stream.ts';
import { applyFrames, loadTasks } from './tasks.ts';

export type FrameListener = (frames: readonly Frame[]) => void;

/** A view that shows the frames of one task. `onFresh`: read its history again. */
export interface TaskFollower {
  readonly onFrames: FrameListener;
  readonly onFresh: () => void;
}
const followers = new Set<TaskFollower>();

export const followFrames = (follower: TaskFollower): (() => void) => {
  followers.add(follower);
  return () => followers.delete(follower);
};

/** Changes are drawn together, at most 20 times a second. */
const gatherMs = 50;
let gathered: Frame[] = [];
let timer: ReturnType<typeof setTimeout> | null = null;

const flush = (): void => {
  timer = null;
  const frames = gathered;
  gathered = [];
  readDetails(applyFrames(frames));
  readWorkOfEnded();
  for (const { onFrames } of followers) onFrames(frames);
};

let isFollowing = false;

/** Until the session ends. */
export const goLive = async (): Promise<void> => {
  if (isFollowing) return;
  isFollowing = true;
  const wanted = (): boolean => session.value.state === 'in';
  await followStream(
    {
      onFresh: async () => {
        await loadTasks();
        readWorkOfEnded();
        for (const { onFresh } of followers) onFresh();
      },
      onFrames: (frames) => {
        gathered.push(...frames);
        if (timer === null) timer = setTimeout(flush, gatherMs);
      },
    },
    wanted,
  );
  isFollowing = false;
};
