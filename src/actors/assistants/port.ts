import type { AssistantName } from '../../machines/agent/agent-context.ts';
import type { ImageData } from '../files/image.ts';
import type { HandedServer } from '../mcp/port.ts';
import type { ModelUsage } from '../model/port.ts';
import type { AssistantNeeds } from '../sandbox/port.ts';
import type { HandOver } from './hand-over.ts';

export type TokensUsed = ModelUsage;

export const noTokens: TokensUsed = { inputTokens: 0, outputTokens: 0, cachedTokens: 0 };

export type AssistantEvent =
  | { readonly type: 'session'; readonly id: string }
  /** The model that it works with. */
  | { readonly type: 'model'; readonly name: string }
  | { readonly type: 'text'; readonly text: string }
  | {
      readonly type: 'tool_started';
      readonly callId: string;
      readonly tool: string;
      readonly arguments: string;
    }
  | {
      readonly type: 'tool_ended';
      readonly callId: string;
      readonly ok: boolean;
      readonly output: string;
    }
  /** A command ran, or could not start; one command may give two such events. */
  | { readonly type: 'command'; readonly problem: string | null }
  | { readonly type: 'changed'; readonly path: string }
  /** Usage of one model call; a later event with the same id replaces it. */
  | { readonly type: 'called'; readonly id: string; readonly used: TokensUsed }
  | { readonly type: 'used'; readonly since: 'run' | 'session'; readonly used: TokensUsed }
  /** It tells the tokens of its runs, but not of this one. */
  | { readonly type: 'untold' }
  | { readonly type: 'cost'; readonly usd: number }
  /**
   * Cost of the run or of the session; `inputTokens` is the input that it covers, null when not
   * given.
   */
  | { readonly type: 'cost_so_far'; readonly usd: number; readonly inputTokens: number | null }
  | { readonly type: 'note'; readonly level: 'info' | 'warn'; readonly message: string }
  /** The account is over a limit until then (epoch ms); null: not said. */
  | { readonly type: 'limited'; readonly resetsAt: number | null }
  /** Null: the last text is the result. Usage events follow. */
  | { readonly type: 'result'; readonly text: string | null }
  | {
      readonly type: 'failed';
      readonly code: 'model_failed' | 'budget_exceeded';
      readonly message: string;
      readonly retryable: boolean;
    };

/** An image in a folder of its run, and its bytes in base64. */
export interface ImageFile extends ImageData {
  readonly path: string;
}

export interface AssistantStart {
  readonly model: string | null;
  /** The session to resume, or null for a new one. */
  readonly session: string | null;
  /** The prompt; the file is also the standard input. */
  readonly promptFile: string;
  readonly taskId: string;
  readonly role: string;
  readonly moneyLeftUsd: number | null;
  /** Arguments of `handOver`. */
  readonly more?: readonly string[];
  /** Images that a person attached, which the prompt names, too. */
  readonly images?: readonly ImageFile[];
  /** The user's MCP servers, for an assistant that gets them by message. */
  readonly servers?: readonly HandedServer[];
}

/** The returned function reads once more and stops. */
export type WatchSession = (watched: {
  readonly session: string;
  readonly root: string;
  readonly env: Readonly<Record<string, string>>;
  /** Start of the run (epoch ms); earlier records of the session are skipped. */
  readonly since: number;
  readonly onEvent: (event: AssistantEvent) => void;
}) => () => Promise<void>;

export interface PermissionCall {
  readonly callId: string;
  readonly tool: string;
  /** JSON text. */
  readonly arguments: string;
}

export interface ConversationPorts {
  readonly start: Omit<AssistantStart, 'promptFile'>;
  /** `resumed`: for a session that goes on; `fresh`: for a new one. */
  readonly prompts: { readonly resumed: string; readonly fresh: string };
  readonly root: string;
  /** Writes a line to its standard input. Never throws. */
  readonly send: (line: string) => void;
  /** Ends its standard input. */
  readonly end: () => void;
  readonly onEvent: (event: AssistantEvent) => void;
  /** May wait for a person. */
  readonly askPermission: (call: PermissionCall) => Promise<boolean>;
  /** True for a tool whose calls must not be made without permission. */
  readonly mustAsk: (tool: string) => boolean;
}

export interface AssistantDialog {
  /** Reads a line of its standard output. Never throws. */
  read(line: string): void;
  /** Asks it to stop. */
  cancel(): void;
  /** The program is gone; nothing is reported from now on. */
  close(reason: string): void;
  /** Resolves at the end of the dialog; never rejects. */
  readonly done: Promise<void>;
}

/** A program that works on an attempt with an agent loop of its own. */
export interface Assistant {
  readonly name: AssistantName;
  /** Its name for people. */
  readonly label: string;
  /** Variables that it gets beside those of every child process. */
  readonly variables: readonly string[];
  /** Variables that are set for it. */
  readonly settings?: (env: Readonly<Record<string, string>>) => Readonly<Record<string, string>>;
  /** Hosts of its provider as it comes, for HTTPS. */
  readonly providers: readonly string[];
  readonly reportsCost: boolean;
  readonly tellsTokens: boolean;
  readonly resumes: boolean;
  argv(start: AssistantStart): readonly [string, ...string[]];
  /** Hands it the user's MCP servers; the content goes to `file`. */
  handOver?(servers: readonly HandedServer[], file: string): HandOver;
  /** Files and folders that it needs beside its program and its workspace. */
  needs(env: Readonly<Record<string, string>>): AssistantNeeds;
  /** Parses a line of its standard output; unknown lines give no events. Pure; never throws. */
  read(line: string): readonly AssistantEvent[];
  /** Present: its standard input is not the prompt but a dialog, and `read` is not called. */
  readonly converse?: (ports: ConversationPorts) => AssistantDialog;
  readonly watch?: WatchSession;
  /** True when exit code 0 means success, with the end of its output as the result. */
  readonly endsByExit: boolean;
}
