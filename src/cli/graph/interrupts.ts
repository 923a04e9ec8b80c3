import { messageOf } from '../../machines/message-of.ts';
import { exitCodes } from '../output/exit-codes.ts';
import type { Io } from '../output/io.ts';

export interface InterruptPorts {
  readonly io: Io;
  /** A person is there to be asked. */
  readonly asks: boolean;
  /** True when all tasks were started by others: they go on. */
  readonly onlyFollows: () => boolean;
  /** Cancels what this run started. */
  readonly cancel: () => Promise<void>;
  /** Shows a line, or takes it away. */
  readonly show: (question: string | null) => void;
  /** A person leaves the run in the background. */
  readonly leave: () => void;
}

export interface Interrupts {
  readonly wasInterrupted: () => boolean;
  readonly wasLeft: () => boolean;
  stop(): void;
}

const questionOfRunner = 'Ctrl-C again cancels this run; Enter leaves it running in the background';

const questionOfFollower = 'Ctrl-C again ends this view; the tasks go on';

/**
 * On a terminal the first Ctrl-C asks, the second cancels, the third exits at once. Elsewhere the
 * first one cancels. What others started goes on.
 */
export const handleInterrupts = ({
  io,
  asks,
  onlyFollows,
  cancel,
  show,
  leave,
}: InterruptPorts): Interrupts => {
  let presses = asks ? 0 : 1;
  let isInterrupted = false;
  let isLeft = false;
  const onLine = (): void => {
    isLeft = true;
    show(null);
    leave();
  };
  const stopAsking = (): void => {
    if (!asks) return;
    process.stdin.off('data', onLine);
    process.stdin.pause();
  };
  const cancelOwn = (): void => {
    show(null);
    io.err('cancelling the tasks of this run; press Ctrl-C again to exit at once');
    cancel().catch((error: unknown) => io.err(messageOf(error)));
  };
  const onSignal = (): void => {
    isInterrupted = true;
    presses += 1;
    if (presses === 1) {
      show(onlyFollows() ? questionOfFollower : questionOfRunner);
      process.stdin.once('data', onLine);
      process.stdin.resume();
    } else if (presses === 2) {
      stopAsking();
      if (onlyFollows()) onLine();
      else cancelOwn();
    } else process.exit(exitCodes.interrupted);
  };
  process.on('SIGINT', onSignal);
  return {
    wasInterrupted: () => isInterrupted,
    wasLeft: () => isLeft,
    stop: () => {
      process.off('SIGINT', onSignal);
      stopAsking();
    },
  };
};
