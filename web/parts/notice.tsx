import type { Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { Icon } from './icon.tsx';

/** Why an action failed, in the place where it was asked for. */
export const Problem = ({ message }: { message: Signal<string | null> }) =>
  message.value === null || message.value === '' ? null : (
    <p class="problem" role="alert">
      <Icon name="cross" />
      <span>{message.value}</span>
      <button
        type="button"
        class="link"
        onClick={() => {
          message.value = null;
        }}
      >
        Dismiss
      </button>
    </p>
  );

/** Why a view is empty, and what to do next. */
export const Empty = ({ title, children }: { title: string; children?: ComponentChildren }) => (
  <div class="empty">
    <h2>{title}</h2>
    <div class="empty-what">{children}</div>
  </div>
);
