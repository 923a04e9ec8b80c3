import { signal } from '@preact/signals';

/** Epoch ms, for ages and for what has not ended. */
export const now = signal(Date.now());

/** `now` changes every second. */
export const startClock = (): void => {
  setInterval(() => {
    now.value = Date.now();
  }, 1_000);
};
