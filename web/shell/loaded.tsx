import type { ComponentType, JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Empty } from '../parts/notice.tsx';

type Later = typeof import('./later.ts');
/** A view, or a part of one, that is loaded when it is first drawn. */
export const later =
  (name: keyof Later) =>
  (props: object): JSX.Element | null => {
    const [View, show] = useState<ComponentType<object> | null>(null);
    useEffect(() => {
      import('./later.ts').then(
        (all) => show(() => all[name] as ComponentType<object>),
        // A server of another version has other files.
        () => show(() => () => <Empty title="Not loaded. Reload the page." />),
      );
    }, []);
    return View && <View {...props} />;
  };
