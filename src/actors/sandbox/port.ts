import type { GuardFolder } from './shared-folder.ts';

/** A folder of an assistant's own, with its settings and its sessions. */
export interface OwnFolder {
  /** Absolute. */
  readonly path: string;
  /** The folder in it that the assistant may write, and that stays. */
  readonly sessions: string;
  /** The file in it with the login, which the assistant renews. */
  readonly credentials: string;
  /** Names in it that the assistant may read. Programs would obey what is changed there, also outside of the sandbox. */
  readonly shown: RegExp;
}

/** What an assistant needs beside the workspace. */
export interface AssistantNeeds {
  /** Absolute. It is empty inside, but for the folders and files that are named here. */
  readonly home: string;
  readonly folders: readonly OwnFolder[];
  /** Further files that it may read. */
  readonly files: readonly string[];
  /** Whether it holds its commands by namespaces of its own. */
  readonly nests: boolean;
}

/** A git directory that is the agent's own, and where it is seen. */
export interface OwnGit {
  readonly dir: string;
  readonly at: string;
}

/** A command as a tool wants it run. */
export interface SandboxRequest {
  readonly argv: readonly [string, ...string[]];
  /** The workspace: the one folder that the command may change. Absolute, symlinks resolved. */
  readonly root: string;
  /** Further paths that it may read. */
  readonly readable: readonly string[];
  /** Absent where the workspace is the user's own folder: then protected paths are held at every depth. */
  readonly git?: OwnGit | null | undefined;
  /** What it may read and not change in the workspace, absolute; absent: what is protected at its top. */
  readonly held?: readonly string[];
  /** Whether it may change nothing at all, such as a search. */
  readonly readOnly?: boolean;
  /** Whether it may reach the network; absent: as the sandbox is made. */
  readonly network?: boolean;
  /** Absent for what is no assistant. */
  readonly assistant?: AssistantNeeds;
  /** The whole environment of the command. */
  readonly env: Readonly<Record<string, string>>;
}

/** What is really spawned. */
export interface SandboxedSpawn {
  readonly argv: readonly [string, ...string[]];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** What it reads from its file descriptor 3, if anything. */
  readonly fd3?: Uint8Array;
  /** To be called when it has ended. Never throws. */
  readonly release?: () => void;
}

/** The same sandbox for commands that may, or may not, reach the network. */
export const withNetwork = (sandbox: Sandbox, network: boolean): Sandbox => ({
  ...sandbox,
  confine: (wanted) => sandbox.confine({ ...wanted, network }),
});

/** The same sandbox for an assistant, which calls its provider. */
export const forAssistant = (sandbox: Sandbox, assistant: AssistantNeeds): Sandbox => ({
  ...sandbox,
  confine: (wanted) => sandbox.confine({ ...wanted, network: true, assistant }),
});

/** Where the commands of agents run (DESIGN 4). */
export interface Sandbox {
  /** For the banner and doctor: what holds commands, or that nothing does. */
  readonly describe: () => string;
  /** Whether commands can be run at all; `detail` says what to install. */
  check(): { readonly ok: boolean; readonly detail: string };
  /** Holds protected paths in the user's own folder, around each command; absent where nothing is held. */
  readonly guard?: GuardFolder;
  /** How a command is spawned so that it is held, or why it is refused. Never runs it unheld when it should be held. */
  confine(wanted: SandboxRequest): SandboxedSpawn | { readonly refusal: string };
}
