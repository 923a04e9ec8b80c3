import { ServiceError } from '../../../machines/errors.ts';
import { plural } from '../../../machines/plural.ts';
import type { TaskId } from '../../../machines/task.ts';
import {
  allImageBytesAtMost,
  digestOf,
  type ImageFacts,
  imageProblem,
  imagesAtMost,
  imageTypeOf,
} from '../../files/image.ts';
import { entry } from '../../journal/event-types.ts';
import type { TaskView } from '../../journal/task-view.ts';
import type { Answer, NamedImage, NewEntry, Store } from '../../store/port.ts';
import type { TrackerWrites } from '../../tracker/port.ts';

type Attachments = NonNullable<TaskView['attachments']>;

export const attachmentsOf = (images: readonly ImageFacts[]): Attachments =>
  images.map(({ digest, name, mediaType, bytes }) => ({
    digest,
    name,
    media_type: mediaType,
    bytes,
  }));

interface AttachingPorts {
  readonly store: Pick<Store, 'images'> | null;
  readonly record: (entry: NewEntry) => Answer<void>;
  readonly now: () => number;
  readonly remove: TrackerWrites['remove'];
}

const refused = (path: string, problem: string): ServiceError =>
  new ServiceError('invalid_params', { fields: [{ path, problem }] });

/** @throws invalid_params */
const requireAttachable = (
  wanted: readonly NamedImage[],
  uploaded: readonly ImageFacts[],
): void => {
  if (wanted.length > imagesAtMost)
    throw refused('attachments', `a task has at most ${plural(imagesAtMost, 'image')}`);
  const missing = wanted.findIndex(
    ({ digest }) => !uploaded.some((image) => image.digest === digest),
  );
  if (missing >= 0)
    throw refused(`attachments.${missing}.digest`, 'is no uploaded image; upload it again');
  const bytes = uploaded.reduce((sum, image) => sum + image.bytes, 0);
  if (bytes > allImageBytesAtMost)
    throw refused(
      'attachments',
      `together they have ${bytes} bytes, more than the ${allImageBytesAtMost} of a task`,
    );
};

/** Uploads images, and attaches them to tasks as these are made. */
export const createAttaching = ({ store, record, now, remove }: AttachingPorts) => ({
  upload: async (bytes: Buffer): Promise<ImageFacts> => {
    const problem = imageProblem(bytes);
    const mediaType = imageTypeOf(bytes);
    if (problem !== null || mediaType === null || store === null)
      throw refused('image', problem ?? 'cannot be kept');
    const digest = digestOf(bytes);
    await store.images.upload({ digest, mediaType, data: bytes.toString('base64') }, bytes.length);
    return { digest, mediaType, name: '', bytes: bytes.length };
  },
  /** Checks before the task is made. @returns attaches them to it. @throws invalid_params */
  prepare: async (wanted: readonly NamedImage[]) => {
    if (wanted.length === 0 || store === null) return async (): Promise<Attachments> => [];
    requireAttachable(wanted, await store.images.uploaded(wanted.map(({ digest }) => digest)));
    return async (taskId: TaskId): Promise<Attachments> => {
      try {
        await store.images.attach(taskId, wanted);
      } catch (error) {
        // A task without its images would be another one.
        await remove(taskId);
        throw error;
      }
      const attachments = attachmentsOf(await store.images.attached(taskId));
      const names = attachments.map(({ name, digest }) => name || digest.slice(0, 8)).join(', ');
      const data = { level: 'info', message: `attached: ${names}`, attached: attachments };
      await record(entry(taskId, 0, 'log', now(), data));
      return attachments;
    };
  },
});
