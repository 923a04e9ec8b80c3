import { useEffect, useRef } from 'preact/hooks';
import { isHelpOpen } from './keys.ts';

const groups: readonly (readonly [string, readonly (readonly [string, string])[]])[] = [
  [
    'Anywhere',
    [
      ['This help', '?'],
      ['Search tasks', '/'],
      ['New task', 'c'],
      ['Needs you', 'g n'],
      ['Board', 'g b'],
      ['Graph', 'g g'],
      ['Machines', 'g m'],
      ['System', 'g s'],
      ['Close, or back', 'Esc'],
    ],
  ],
  [
    'Lists and board',
    [
      ['Next, previous', 'j k'],
      ['Column left, right', 'h l'],
      ['Open', 'Enter'],
      ['Select several on the board', 'x'],
    ],
  ],
  [
    'Needs you, in the focused row',
    [
      ['Allow', 'a'],
      ['Deny, with the reason', 'd'],
      ['Write', 'i'],
      ['Send it', 'Ctrl Enter'],
      ['Retry', 'r'],
      ['Update', 'u'],
      ['Merge', 'm'],
      ['Publish', 'p'],
    ],
  ],
  [
    'Task and diff',
    [
      ['Diff', 'v'],
      ['Line below, above', 'j k'],
      ['Comment on the line', 'Enter'],
      ['Edit', 'e'],
      ['Follow the log', 'f'],
      ['Update', 'u'],
      ['Merge', 'm'],
      ['Publish', 'p'],
      ['Send back', 's'],
    ],
  ],
];

export const Help = () => {
  const dialog = useRef<HTMLDialogElement>(null);
  const isOpen = isHelpOpen.value;
  useEffect(() => {
    if (isOpen) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isOpen]);
  return (
    <dialog
      ref={dialog}
      class="help"
      aria-label="Keyboard"
      onClose={() => {
        isHelpOpen.value = false;
      }}
    >
      <header>
        <h2>Keyboard</h2>
        <span class="quiet small">Off while you type</span>
        <kbd>Esc</kbd>
      </header>
      <div class="help-groups">
        {groups.map(([name, keys]) => (
          <section key={name}>
            <h3>{name}</h3>
            <dl>
              {keys.map(([what, key]) => (
                <div key={what}>
                  <dt>{what}</dt>
                  <dd>
                    {key.split(' ').map((each) => (
                      <kbd key={each}>{each}</kbd>
                    ))}
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </dialog>
  );
};
