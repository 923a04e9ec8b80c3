import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { messageOf } from '../../src/machines/message-of.ts';

export interface ButtonProps {
  readonly children: ComponentChildren;
  /** While it works, the button is busy and a second press does nothing. */
  readonly onPress: () => Promise<unknown> | unknown;
  /** Enter in a field of its form presses the primary one. */
  readonly kind?: 'primary' | 'plain' | 'quiet' | 'danger';
  /** The key that does the same. */
  readonly hotkey?: string;
  /** Why it cannot be pressed now. */
  readonly whyNot?: string | null;
  /** A hint, where the word alone does not say what a press does. */
  readonly hint?: string;
  /** Also called with no text when an action begins. */
  readonly onError?: (message: string) => void;
  readonly label?: string;
  /** What the second press does: the first one asks with these words. */
  readonly sure?: string;
}

export const Button = ({
  children,
  onPress,
  kind = 'plain',
  hotkey,
  whyNot,
  hint,
  onError,
  label,
  sure,
}: ButtonProps) => {
  const isBusy = useSignal(false);
  const isAsked = useSignal(false);
  const press = async (): Promise<void> => {
    if (isBusy.value || (whyNot ?? null) !== null) return;
    onError?.('');
    if (sure !== undefined && !isAsked.value) {
      isAsked.value = true;
      return;
    }
    isBusy.value = true;
    try {
      await onPress();
      isAsked.value = false;
    } catch (error) {
      onError?.(messageOf(error));
    } finally {
      isBusy.value = false;
    }
  };
  return (
    <button
      type={kind === 'primary' ? 'submit' : 'button'}
      class={`button ${isAsked.value ? 'danger' : kind} ${isBusy.value ? 'busy' : ''}`}
      data-key={hotkey}
      aria-disabled={(whyNot ?? null) !== null}
      aria-busy={isBusy.value}
      aria-keyshortcuts={hotkey}
      aria-label={label}
      title={whyNot ?? hint}
      onClick={() => void press()}
    >
      {isAsked.value ? sure : children}
      {hotkey !== undefined && (
        <span class="key" aria-hidden="true">
          <kbd>{hotkey}</kbd>
        </span>
      )}
    </button>
  );
};
