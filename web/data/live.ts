import { readDetails, readWork } from './details.ts';
import type { Frame } from './frame.ts';
import { createGather } from './gather.ts';
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

const gather = createGather<Frame>((frames) => {
  readDetails(applyFrames(frames));
  readWork();
  for (const { onFrames } of followers) onFrames(frames);
});

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
        readWork();
        for (const { onFresh } of followers) onFresh();
      },
      onFrames: gather,
    },
    wanted,
  );
  isFollowing = false;
};
