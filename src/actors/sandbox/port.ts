import type { HomeCopy } from './home-copy.ts';
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
  /** Copies in its home, which it may change; absent: none. */
  readonly copies?: HomeCopy;
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

/** A network namespace where a command reaches some hosts through a proxy of ours. */
export interface Egress {
  /** `bwrap`: path of the program. @throws an error that says why it cannot be opened */
  open(bwrap: string): Promise<OpenEgress>;
}

export interface OpenEgress {
  /** The command that runs the given one in it. */
  readonly within: (argv: SandboxRequest['argv']) => SandboxRequest['argv'];
  readonly env: Readonly<Record<string, string>>;
  release(): void;
}

/** `false`: none. `true`: the whole network of the machine, loopback included. */
export type Network = boolean | Egress;

export interface SandboxRequest {
  readonly argv: readonly [string, ...string[]];
  /** The workspace, the only folder that the command may change. Absolute, symlinks resolved. */
  readonly root: string;
  readonly readable: readonly string[];
  /**
   * Absent where the workspace is the user's own folder: then protected paths are held at every
   * depth.
   */
  readonly git?: OwnGit | null;
  /**
   * Absolute paths in the workspace that stay read-only; absent: the protected names at its top.
   */
  readonly held?: readonly string[];
  readonly readOnly?: boolean;
  readonly network: Network;
  /** Starts in an empty folder of its own, not in the workspace. */
  readonly inOwnFolder?: boolean;
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

export const forAssistant = (sandbox: Sandbox, assistant: AssistantNeeds): Sandbox => ({
  ...sandbox,
  confine: (wanted) => sandbox.confine({ ...wanted, assistant }),
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
  confine(wanted: SandboxRequest): Promise<SandboxedSpawn | { readonly refusal: string }>;
}
