import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createBoundedText } from '../process/head-tail-buffer.ts';
import type { CommandResult } from '../process/run-command.ts';
import type { Sandbox } from '../sandbox/port.ts';
import { type ConfinedResult, runConfined } from '../sandbox/run-sandboxed.ts';
import type { OpenWorkspace } from '../workspace/port.ts';
import { createLineSplitter } from './line-splitter.ts';
import type { Assistant, AssistantEvent, AssistantStart } from './port.ts';

export interface AssistantRun {
  readonly assistant: Assistant;
  readonly start: Omit<AssistantStart, 'promptFile'>;
  readonly prompt: string;
  readonly root: string;
  /** Further paths that it may read. */
  readonly readable: readonly string[];
  /** The git directory of its own git, where a sandbox mounts one. */
  readonly git: OpenWorkspace['git'];
  readonly sandbox: Sandbox;
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** It is ended when nothing was heard of it for so long. */
  readonly silentMs: number;
  readonly onEvent: (event: AssistantEvent) => void;
}

/** How the program ended, whatever it said. */
export interface RunEnd extends Pick<ConfinedResult, 'exitCode' | 'leftProcesses' | 'quarantined' | 'quarantine'> {
  readonly how: 'itself' | 'stopped' | 'flooded' | 'silent' | 'timeout' | 'not_started' | 'refused';
  /** The end of what it wrote there. */
  readonly stdout: string;
  /** The same, or why it was not begun. */
  readonly stderr: string;
}

const longestLine = 8 * 1024 * 1024;
const maxOutputLength = 64 * 1024 * 1024;
const maxRunMs = 24 * 3_600_000;
const resultBytes = 16 * 1024;
const errorBytes = 16 * 1024;
/** One that gave its result and does not end, for instance for a server that it started, is ended. */
const exitGraceMs = 5_000;

const howItEnded = ({ exitCode, timedOut, aborted }: CommandResult, stopped: boolean): RunEnd['how'] => {
  if (stopped) return 'stopped';
  if (timedOut) return 'timeout';
  return aborted || exitCode !== null ? 'itself' : 'not_started';
};

const refusedRun = (why: string): RunEnd => ({
  how: 'refused',
  exitCode: null,
  leftProcesses: false,
  quarantined: [],
  quarantine: null,
  stdout: '',
  stderr: why,
});

const runWith = async (promptFile: string, run: AssistantRun): Promise<RunEnd> => {
  const { assistant, start, root, readable, git, sandbox, env, signal, silentMs, onEvent } = run;
  const enough = new AbortController();
  const stdout = createBoundedText({ headBytes: 0, tailBytes: resultBytes });
  const stderr = createBoundedText({ headBytes: 0, tailBytes: errorBytes });
  let written = 0;
  let grace: NodeJS.Timeout | undefined;
  let stopWatching: (() => Promise<void>) | undefined;
  const since = Date.now();
  let isSilent = false;
  const fallSilent = setTimeout(() => {
    isSilent = true;
    enough.abort();
  }, silentMs);

  const take = (event: AssistantEvent): void => {
    if (event.type === 'session') stopWatching ??= assistant.watch?.({ session: event.id, env, since, onEvent });
    if (event.type === 'result') grace ??= setTimeout(() => enough.abort(), exitGraceMs);
    onEvent(event);
  };
  const lines = createLineSplitter({
    longest: longestLine,
    onLine: (line) => assistant.read(line).forEach(take),
    onDropped: () => take({ type: 'note', level: 'warn', message: 'a line longer than 8 MiB was left out' }),
  });

  const result = await runConfined(sandbox, {
    argv: assistant.argv({ ...start, promptFile }),
    root,
    readable: [...readable, promptFile],
    git,
    env,
    stdinFile: promptFile,
    timeoutMs: maxRunMs,
    signal: AbortSignal.any([signal, enough.signal]),
    onOutput: (text, stream) => {
      fallSilent.refresh();
      written += text.length;
      if (written > maxOutputLength) enough.abort();
      if (enough.signal.aborted || signal.aborted) return;
      (stream === 'stdout' ? stdout : stderr).push(text);
      if (stream === 'stdout') lines.push(text);
    },
    headBytes: 0,
    tailBytes: errorBytes,
  });
  clearTimeout(grace);
  clearTimeout(fallSilent);
  await stopWatching?.();
  if ('refusal' in result) return refusedRun(result.refusal);
  if (!signal.aborted) lines.end();
  const early = written > maxOutputLength ? ('flooded' as const) : isSilent ? ('silent' as const) : null;
  const how = early ?? howItEnded(result, signal.aborted);
  const { exitCode, leftProcesses, quarantined, quarantine } = result;
  const said = how === 'not_started' ? result.output : stderr.read().text;
  return { how, exitCode, leftProcesses, quarantined, quarantine, stdout: stdout.read().text, stderr: said };
};

/**
 * Runs an assistant to its end, in the sandbox and in a process group of its own: without a shell, with the prompt as its whole standard
 * input, with bounds on what it writes. Resolves when nothing of it runs any more. Rejects only for want of a prompt file.
 */
export const runAssistant = async (run: AssistantRun): Promise<RunEnd> => {
  const folder = await mkdtemp(join(tmpdir(), 'agent-prompt-'));
  try {
    const promptFile = join(folder, 'prompt.md');
    await writeFile(promptFile, run.prompt, { mode: 0o600 });
    return await runWith(promptFile, run);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};
