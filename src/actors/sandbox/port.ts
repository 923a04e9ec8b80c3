import type { SharedFolders } from './shared-folder.ts';

export interface OwnFolder {
  /** Absolute. */
  readonly path: string;
  /**
   * The folder of its sessions, relative to `path`. Only those of the workspace are mounted, and
   * they stay.
   */
  readonly sessions: string;
  /** The login file in it, which the assistant renews. */
  readonly credentials: string;
  /**
   * Names in it that the assistant may read. They are read-only: programs would obey a change, also
   * outside the sandbox.
   */
  readonly shown: RegExp;
}

export interface AssistantNeeds {
  /** Absolute. Empty inside, but for the folders and files named here. */
  readonly home: string;
  readonly folders: readonly OwnFolder[];
  readonly files: readonly string[];
  /**
   * Files and folders of the workspace, relative to it, whose plugins or hooks the assistant would
   * run. They are empty inside.
   */
  readonly hides?: readonly string[];
  /** True for an assistant that makes its own sandbox. */
  readonly makesOwnSandbox: boolean;
}

/** The agent's own git directory, and where the sandbox mounts it. */
export interface OwnGit {
  readonly dir: string;
  readonly at: string;
}

export interface SandboxRequest {
  readonly argv: readonly [string, ...string[]];
  /** The workspace, the only folder that the command may change. Absolute, symlinks resolved. */
  readonly root: string;
  readonly readable: readonly string[];
  /**
   * Absent where the workspace is the user's own folder: then protected paths are held at every
   * depth.
   */
  readonly git?: OwnGit | null | undefined;
  /**
   * Absolute paths in the workspace that stay read-only; absent: the protected names at its top.
   */
  readonly held?: readonly string[];
  readonly readOnly?: boolean;
  readonly network?: boolean;
  readonly assistant?: AssistantNeeds;
  readonly env: Readonly<Record<string, string>>;
}

export interface SandboxedSpawn {
  readonly argv: readonly [string, ...string[]];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly inputs?: readonly Uint8Array[];
  /** As in `Command`. */
  readonly prepare?: (pid: number) => void;
  readonly release?: () => void;
}

export const withNetwork = (sandbox: Sandbox, network: boolean): Sandbox => ({
  ...sandbox,
  confine: (wanted) => sandbox.confine({ ...wanted, network }),
});

export const forAssistant = (sandbox: Sandbox, assistant: AssistantNeeds): Sandbox => ({
  ...sandbox,
  confine: (wanted) => sandbox.confine({ ...wanted, network: true, assistant }),
});

export interface Sandbox {
  readonly describe: () => string;
  /** `detail` says what to install when no command can run. */
  check(): { readonly ok: boolean; readonly detail: string };
  /**
   * Protects paths in the user's own folder around each command; absent where nothing is confined.
   */
  readonly shared?: SharedFolders;
  /** Returns a refusal rather than run a command unconfined. */
  confine(wanted: SandboxRequest): SandboxedSpawn | { readonly refusal: string };
}
