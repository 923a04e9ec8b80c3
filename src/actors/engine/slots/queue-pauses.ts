import { atWork, pauseOf } from '../../../machines/supervisor/supervisor-context.ts';
import type { SlotUse } from '../queries/explain.ts';
import type { SupervisorEvents, SupervisorSnapshot } from './supervision.ts';

export const endQueuePauses = (
  supervisor: Pick<SupervisorEvents, 'on' | 'send'>,
  log: (message: string, facts: Readonly<Record<string, unknown>>) => void,
): { stop(): void } => {
  let timer: NodeJS.Timeout | undefined;
  supervisor.on('queue.paused', ({ ms }) => {
    log('queue paused: attempts in a row failed with the same provider error', { pause_ms: ms });
    clearTimeout(timer);
    timer = setTimeout(() => supervisor.send({ type: 'pause.over' }), ms).unref();
  });
  return { stop: () => clearTimeout(timer) };
};

export const slotUseOf = (snapshot: SupervisorSnapshot): SlotUse => {
  const { waiting, cap, queueLimit, streak } = snapshot.context;
  const isPaused = (snapshot.matches('paused') || snapshot.matches('probing')) && streak !== null;
  const paused = isPaused
    ? `the queue is paused: attempts in a row failed with the same provider error (${streak.message}); it is tried again every ${pauseOf(snapshot.context) / 1_000} s`
    : null;
  return {
    running: atWork(snapshot.context).length,
    waiting: waiting.length,
    cap,
    queueLimit,
    paused,
  };
};
