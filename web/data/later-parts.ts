import type { Signal } from '@preact/signals';
import type { ComponentType } from 'preact';
import type { Moment } from '../model/moments.ts';
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

export interface AgentChartProps {
  readonly id: string;
  readonly shown: { readonly all: readonly Moment[]; readonly moment: Moment | null };
}

/** Parts of a view that are loaded when they are first drawn; a recording has no images. */
export const parts: {
  Images: ComponentType<ImagesProps>;
  AgentChart: ComponentType<AgentChartProps>;
} = { Images: () => null, AgentChart: () => null };
