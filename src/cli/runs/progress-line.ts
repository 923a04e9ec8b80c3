import type { Frame } from '../client/client.ts';
import { durationText } from '../output/durations.ts';
import type { Io } from '../output/io.ts';
import { callText, parkedLine, turnText } from '../output/render-frame.ts';
import { phaseWord } from '../words/state-words.ts';

const spinner = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'] as const;
const progressTickMs = 120;

/** The live line of a run on a terminal: spinner, turn, current activity and its duration. */
export interface ProgressLine {
  see(frame: Frame): void;
  /** Clears the line while something else is on the terminal. */
  pause(): void;
  stop(): void;
}

interface ShownProgress {
  readonly attempt: number;
  readonly turn: string | null;
  readonly doing: string;
}

const changeInTask = (frame: Frame): Partial<ShownProgress> => {
  const { attempt, type, data } = frame;
  if (type === 'api_call_start') return { attempt, turn: turnText(frame), doing: 'thinking' };
  if (type === 'tool_start') return { attempt, doing: callText(frame) };
  if (type === 'tool_end') return { attempt, doing: 'thinking' };
  if (type === 'log' && typeof data['command'] === 'string' && data['exit_code'] === undefined)
    return { attempt, doing: `verify ${data['command']}` };
  const phase = type === 'status_update' ? data['phase'] : undefined;
  const parked = type === 'status_update' ? parkedLine(data) : null;
  if (parked !== null) return { attempt, doing: parked };
  if (typeof phase !== 'string' || phase === 'acting') return {};
  return { attempt, doing: phaseWord(phase) };
};

export const createProgressLine = (io: Io, taskId: string): ProgressLine => {
  const beganAt = performance.now();
  let shown: ShownProgress = { attempt: 0, turn: null, doing: 'starting' };
  let tick = 0;
  let isPaused = false;
  const draw = (): void => {
    if (isPaused) return;
    const { attempt, turn, doing } = shown;
    const parts = [
      ...(attempt > 1 ? [`attempt ${attempt}`] : []),
      ...(turn === null ? [] : [turn]),
      durationText(performance.now() - beganAt),
      doing,
    ];
    io.live(`${spinner[tick % spinner.length]} ${taskId}  ${parts.join('  ')}`);
    tick += 1;
  };
  const timer = io.width === null ? undefined : setInterval(draw, progressTickMs);
  return {
    see: (frame) => {
      isPaused = false;
      shown = { ...shown, ...changeInTask(frame) };
      draw();
    },
    pause: () => {
      isPaused = true;
      io.live('');
    },
    stop: () => {
      clearInterval(timer);
      io.live('');
    },
  };
};
