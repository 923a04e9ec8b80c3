import type { Signal } from '@preact/signals';
import type { ComponentType } from 'preact';
import type { TaskView } from './tasks.ts';

/** An image that was uploaded for a task that is about to be made. */
export interface NewImage {
  readonly digest: string;
  readonly name: string;
}

export interface ImagesProps {
  readonly task?: TaskView;
  /** For a new task. */
  readonly images?: Signal<readonly NewImage[]>;
  readonly fail?: (message: string) => void;
}

/** Draws the images of a task, or those for a new one; nothing in a recording, which has none. */
export const parts: { Images: ComponentType<ImagesProps> } = { Images: () => null };
