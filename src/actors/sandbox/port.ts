import type { SharedFolders } from './shared-folder.ts';

/** A folder of an assistant's own, with its settings and its sessions. */
export interface OwnFolder {
  /** Absolute. */
  readonly path: string;
  /** Where in it the assistant keeps its sessions: there it has those of the workspace alone, which stay. */
  readonly sessions: string;
  /** The file in it with the login, which the assistant renews. */
  readonly credentials: string;
  /** Names in it that the assistant may read. Programs would obey what is changed there, also outside of the sandbox. */
  readonly shown: RegExp;
}

export interface AssistantNeeds {
  /** Absolute. It is empty inside, but for the folders and files that are named here. */
  readonly home: string;
  readonly folders: readonly OwnFolder[];
  /** Further files that it may read. */
  readonly files: readonly string[];
  /** True for an assistant that makes its own sandbox. */
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
  /** Absolute paths in the workspace that stay read-only; absent: the protected names at its top. */
  readonly held?: readonly string[];
  /** Makes the whole workspace read-only, for instance for a search. */
  readonly readOnly?: boolean;
  /** Absent: the default of the sandbox. */
  readonly network?: boolean;
  /** Absent for what is no assistant. */
  readonly assistant?: AssistantNeeds;
  /** The whole environment of the command. */
  readonly env: Readonly<Record<string, string>>;
}

/** The process to spawn for a sandbox request. */
export interface SandboxedSpawn {
  readonly argv: readonly [string, ...string[]];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Contents of its file descriptors 3, 4 and so on. */
  readonly inputs?: readonly Uint8Array[];
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

/** Confines the commands of agents (DESIGN 4). */
export interface Sandbox {
  /** For the banner and doctor: what holds commands, or that nothing does. */
  readonly describe: () => string;
  /** `detail` says what to install when no command can run. */
  check(): { readonly ok: boolean; readonly detail: string };
  /** Holds protected paths in the user's own folder, around each command; absent where nothing is held. */
  readonly shared?: SharedFolders;
  /** Refuses rather than run a command unconfined. */
  confine(wanted: SandboxRequest): SandboxedSpawn | { readonly refusal: string };
}
