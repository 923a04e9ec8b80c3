import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Empty } from '../parts/notice.tsx';

type ViewOf = ComponentType<{ taskId: string }>;

/** A view that is loaded when it is opened. */
export const loaded =
  (load: () => Promise<ViewOf>): ViewOf =>
  ({ taskId }) => {
    const [View, show] = useState<ViewOf | null>(null);
    useEffect(() => {
      load().then(
        (view) => show(() => view),
        // A server of another version has other files.
        () => show(() => () => <Empty title="Not loaded. Reload the page." />),
      );
    }, []);
    return View && <View taskId={taskId} />;
  };
