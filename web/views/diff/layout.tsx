import { signal } from '@preact/signals';
import { choose, chosen } from '../../data/choices.ts';

/** The lines before and after beside each other, or one below the other. */
export const isSplit = signal(chosen('diff-layout') === 'split');

export const LayoutSwitch = () => (
  <fieldset class="switch">
    <legend class="hidden">Layout of the changes</legend>
    {[false, true].map((split) => (
      <button
        key={`${split}`}
        type="button"
        aria-pressed={isSplit.value === split}
        onClick={() => {
          isSplit.value = split;
          choose('diff-layout', split ? 'split' : 'unified');
        }}
      >
        {split ? 'Split' : 'Unified'}
      </button>
    ))}
  </fieldset>
);
