/** A command as a tool wants it run. */
export interface Wanted {
  readonly argv: readonly [string, ...string[]];
  /** The workspace: the one folder that the command may change. Absolute, symlinks resolved. */
  readonly root: string;
  /** Further paths that it may read. */
  readonly readable: readonly string[];
  /** Whether it may reach the network; absent: as the sandbox is made. */
  readonly network?: boolean;
  /** The whole environment of the command. */
  readonly env: Readonly<Record<string, string>>;
}

/** What is really spawned. */
export interface Confined {
  readonly argv: readonly [string, ...string[]];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** What it reads from its file descriptor 3, if anything. */
  readonly fd3?: Uint8Array;
  /** Names in the workspace that are not there, and that the command must not make (CVE-2026-25725). */
  readonly forbidden: readonly string[];
  /** To be called when it has ended. Never throws. */
  readonly release?: () => void;
}

/** The same sandbox for commands that may, or may not, reach the network. */
export const withNetwork = (sandbox: Sandbox, network: boolean): Sandbox => ({
  ...sandbox,
  confine: (wanted) => sandbox.confine({ ...wanted, network }),
});

/** Where the commands of agents run (DESIGN 4). */
export interface Sandbox {
  /** For the banner and doctor: what holds commands, or that nothing does. */
  readonly describe: () => string;
  /** Whether commands can be run at all; `detail` says what to install. */
  check(): { readonly ok: boolean; readonly detail: string };
  /** How a command is spawned so that it is held, or why it is refused. Never runs it unheld when it should be held. */
  confine(wanted: Wanted): Confined | { readonly refusal: string };
}
