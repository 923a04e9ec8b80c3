import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { dayMs } from '../../machines/milliseconds.ts';
import { plural } from '../../machines/plural.ts';
import type { ImageData } from '../files/image.ts';
import type { HandedServer } from '../mcp/port.ts';
import { createHeadTailBuffer } from '../process/head-tail-buffer.ts';
import { createLineSplitter, maxEventLine } from '../process/line-splitter.ts';
import type { CommandResult } from '../process/run-command.ts';
import { plainText } from '../process/text-gatherer.ts';
import type { Network, Sandbox } from '../sandbox/port.ts';
import { runSandboxed, type SandboxedResult } from '../sandbox/run-sandboxed.ts';
import type { OpenWorkspace } from '../workspace/port.ts';
import { noHandOver } from './hand-over.ts';
import type {
  Assistant,
  AssistantDialog,
  AssistantEvent,
  AssistantStart,
  ConversationPorts,
} from './port.ts';

/** An assistant may leave so many bytes of its standard input unread. */
const mostUnread = 16 * 1024 * 1024;
/** After a cancel an assistant has this time to stop by itself. */
const cancelGraceMs = 1_000;

interface SilenceWatch {
  refresh(): void;
  /** No time passes until the returned function is called. */
  pause(): () => void;
  isOver(): boolean;
  end(): void;
}

/** Calls `onSilent` after a silence of `ms`. */
const watchSilence = (ms: number, onSilent: () => void): SilenceWatch => {
  let isOver = false;
  let pauses = 0;
  const begin = () =>
    setTimeout(() => {
      isOver = true;
      onSilent();
    }, ms);
  let timer = begin();
  return {
    refresh: () => {
      if (pauses === 0) timer.refresh();
    },
    pause: () => {
      pauses += 1;
      clearTimeout(timer);
      return () => {
        pauses -= 1;
        if (pauses > 0) return;
        clearTimeout(timer);
        timer = begin();
      };
    },
    isOver: () => isOver,
    end: () => clearTimeout(timer),
  };
};

interface Dialog extends AssistantDialog {
  /** Begins with the standard input of the program. */
  begin(stdin: Writable): void;
}

interface DialogStart
  extends Pick<ConversationPorts, 'start' | 'root' | 'askPermission' | 'mustAsk'> {
  readonly assistant: Pick<Assistant, 'converse'>;
  readonly prompt: string;
  readonly freshPrompt: string;
}

interface DialogPorts {
  readonly take: (event: AssistantEvent) => void;
  readonly silence: SilenceWatch;
  readonly tooMuch: () => void;
}

/** Null for an assistant without a dialog. The conversation begins with the program. */
const openDialog = (
  { assistant, start, prompt, freshPrompt, root, askPermission, mustAsk }: DialogStart,
  { take, silence, tooMuch }: DialogPorts,
): Dialog | null => {
  const { converse } = assistant;
  if (converse === undefined) return null;
  let conversation: AssistantDialog | null = null;
  let endDone = (): void => {};
  const done = new Promise<void>((resolve) => {
    endDone = resolve;
  });
  const begin = (stdin: Writable): void => {
    const send = (line: string): void => {
      if (stdin.writable) stdin.write(`${line}\n`);
      if (stdin.writableLength > mostUnread) tooMuch();
    };
    conversation = converse({
      start,
      prompts: { resumed: prompt, fresh: freshPrompt },
      root,
      send,
      end: () => stdin.end(),
      onEvent: take,
      mustAsk,
      askPermission: async (call) => {
        const goOn = silence.pause();
        try {
          return await askPermission(call);
        } finally {
          goOn();
        }
      },
    });
    void conversation.done.then(endDone);
  };
  return {
    begin,
    read: (line) => conversation?.read(line),
    cancel: () => conversation?.cancel(),
    close: (reason) => conversation?.close(reason),
    done,
  };
};

/** Aborted with `signal`; with a dialog, when the assistant has stopped or had time for it. */
const stopSignal = (signal: AbortSignal, dialog: Dialog | null): AbortSignal => {
  if (dialog === null) return signal;
  const stop = new AbortController();
  const cancel = (): void => {
    dialog.cancel();
    const timer = setTimeout(() => stop.abort(), cancelGraceMs);
    void dialog.done.then(() => {
      clearTimeout(timer);
      stop.abort();
    });
  };
  if (signal.aborted) stop.abort();
  else signal.addEventListener('abort', cancel, { once: true });
  return stop.signal;
};

export interface AssistantRun {
  readonly assistant: Assistant;
  readonly start: Omit<AssistantStart, 'promptFile'>;
  readonly prompt: string;
  /** The prompt for a new session, when the one of `start` does not go on. */
  readonly freshPrompt: string;
  /** Images that a person attached. */
  readonly images: readonly ImageData[];
  /** The user's MCP servers. */
  readonly servers: readonly HandedServer[];
  readonly root: string;
  readonly readable: readonly string[];
  readonly git: OpenWorkspace['git'];
  readonly sandbox: Sandbox;
  readonly network: Network;
  readonly env: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** A run that is silent for longer is ended. */
  readonly silentMs: number;
  readonly onEvent: (event: AssistantEvent) => void;
  readonly askPermission: ConversationPorts['askPermission'];
  readonly mustAsk: ConversationPorts['mustAsk'];
}

/** The end of the program, apart from what it reported. */
export interface RunEnd
  extends Pick<SandboxedResult, 'exitCode' | 'leftProcesses' | 'quarantined' | 'quarantine'> {
  readonly how: 'itself' | 'stopped' | 'flooded' | 'silent' | 'timeout' | 'not_started' | 'refused';
  /** The last 16 KiB. */
  readonly stdout: string;
  /** The last 16 KiB, or the reason why the program did not start. */
  readonly stderr: string;
}

const maxRunMs = dayMs;
/** A dialog may wait for a person; the deadline of the attempt limits the rest. */
const longestTimerMs = 2 ** 31 - 1;
const resultBytes = 16 * 1024;
const errorBytes = 16 * 1024;
/**
 * An assistant that does not exit this long after its result, for instance because of a server that
 * it started, is ended.
 */
const exitGraceMs = 5_000;

const droppedNote: AssistantEvent = {
  type: 'note',
  level: 'warn',
  message: 'a line longer than 8 MiB was left out',
};
/** The line may have been the answer. */
const droppedFailure: AssistantEvent = {
  type: 'failed',
  code: 'model_failed',
  message: 'it wrote a line longer than 8 MiB, which is not read',
  retryable: false,
};

const endKind = (
  { exitCode, timedOut, aborted }: CommandResult,
  stopped: boolean,
): RunEnd['how'] => {
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

/** The longest output that is read. A dialog repeats the output of a tool call while it grows. */
export const outputMiB = ({ converse }: Assistant): number => (converse === undefined ? 64 : 256);

const runWith = async (promptFile: string, run: AssistantRun): Promise<RunEnd> => {
  const { assistant, root, readable, git, sandbox, network, env, signal, silentMs } = run;
  const enough = new AbortController();
  const stdout = createHeadTailBuffer({ headBytes: 0, tailBytes: resultBytes });
  const stderr = createHeadTailBuffer({ headBytes: 0, tailBytes: errorBytes });
  const longest = outputMiB(assistant) * 1024 * 1024;
  let written = 0;
  let grace: NodeJS.Timeout | undefined;
  let stopWatching: (() => Promise<void>) | undefined;
  const since = Date.now();
  const silence = watchSilence(silentMs, () => enough.abort());

  const endSoon = (): void => {
    grace ??= setTimeout(() => enough.abort(), exitGraceMs);
  };
  const take = (event: AssistantEvent): void => {
    const { onEvent } = run;
    if (event.type === 'session')
      stopWatching ??= assistant.watch?.({ session: event.id, root, env, since, onEvent });
    if (event.type === 'result') endSoon();
    onEvent(event);
  };
  const dialog = openDialog(run, { take, silence, tooMuch: () => enough.abort() });
  const lines = createLineSplitter({
    longest: maxEventLine,
    onLine: dialog?.read ?? ((line) => assistant.read(line).forEach(take)),
    onDropped: () => {
      if (dialog === null) return take(droppedNote);
      take(droppedFailure);
      enough.abort();
    },
  });
  void dialog?.done.then(endSoon);
  const stop = stopSignal(signal, dialog);

  const result = await runSandboxed(sandbox, {
    argv: assistant.argv({ ...run.start, promptFile }),
    root,
    readable: [...readable, promptFile],
    git,
    env,
    network,
    ...(dialog === null ? { stdinFile: promptFile } : { onStdin: dialog.begin }),
    timeoutMs: dialog === null ? maxRunMs : longestTimerMs,
    signal: AbortSignal.any([stop, enough.signal]),
    onOutput: (text, stream) => {
      silence.refresh();
      written += text.length;
      if (written > longest) enough.abort();
      if (enough.signal.aborted || stop.aborted) return;
      (stream === 'stdout' ? stdout : stderr).push(text);
      if (stream === 'stdout') lines.push(text);
    },
    headBytes: 0,
    tailBytes: errorBytes,
  });
  clearTimeout(grace);
  silence.end();
  await stopWatching?.();
  if ('refusal' in result) return refusedRun(result.refusal);
  if (!stop.aborted) lines.end();
  dialog?.close('it ended');
  const early =
    written > longest ? ('flooded' as const) : silence.isOver() ? ('silent' as const) : null;
  const how = early ?? endKind(result, signal.aborted);
  const { exitCode, leftProcesses, quarantined, quarantine } = result;
  const errors = how === 'not_started' ? result.output : stderr.read().text;
  return {
    how,
    exitCode,
    leftProcesses,
    quarantined,
    quarantine,
    stdout: plainText(stdout.read().text),
    stderr: plainText(errors),
  };
};

/** The run with all that the assistant needs for the user's MCP servers. */
const withServers = async (run: AssistantRun, file: string): Promise<AssistantRun> => {
  const { assistant, servers, start, env, readable } = run;
  if (servers.length === 0) return run;
  const handed = assistant.handOver?.(servers, file) ?? noHandOver;
  if (handed.file !== null) await writeFile(file, handed.file, { mode: 0o600 });
  return {
    ...run,
    start: { ...start, servers, more: handed.arguments },
    env: { ...env, ...handed.variables },
    readable: [...readable, ...(handed.file === null ? [] : [file])],
  };
};

const imagesPrompt = (paths: readonly string[]): string =>
  `\n\nA person attached ${plural(paths.length, 'image')} to the task. Look at ${paths.length === 1 ? 'it' : 'them'}:\n\n${paths.map((path) => `- ${path}`).join('\n')}\n`;

/** The run with its images as files, which the prompt names: any assistant can look at a file. */
const withImages = async (run: AssistantRun, folder: string): Promise<AssistantRun> => {
  if (run.images.length === 0) return run;
  await mkdir(folder, { mode: 0o700 });
  const images = run.images.map((image, at) => {
    const ending = image.mediaType.replace('image/', '');
    return { ...image, path: join(folder, `image-${at + 1}.${ending}`) };
  });
  for (const { path, data } of images)
    await writeFile(path, Buffer.from(data, 'base64'), { mode: 0o600 });
  const said = imagesPrompt(images.map(({ path }) => path));
  return {
    ...run,
    prompt: run.prompt + said,
    freshPrompt: run.freshPrompt + said,
    start: { ...run.start, images },
    readable: [...run.readable, folder],
  };
};

/**
 * Runs an assistant to its end, in the sandbox and in a process group of its own, without a shell.
 * The prompt is its whole standard input; its output is bounded. Resolves when none of its
 * processes runs any more. Rejects only when the prompt file cannot be written.
 */
export const runAssistant = async (run: AssistantRun): Promise<RunEnd> => {
  const folder = await mkdtemp(join(tmpdir(), 'agent-prompt-'));
  try {
    const promptFile = join(folder, 'prompt.md');
    const shown = await withImages(run, join(folder, 'images'));
    await writeFile(promptFile, shown.prompt, { mode: 0o600 });
    return await runWith(promptFile, await withServers(shown, join(folder, 'mcp.json')));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};
