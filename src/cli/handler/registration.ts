export interface HandlerEnvironment {
  readonly platform: NodeJS.Platform;
  readonly env: NodeJS.ProcessEnv;
  readonly home: string;
  /** Absolute paths of node and of the agent.js that open links. */
  readonly node: string;
  readonly script: string;
  /** Null where the platform has no user ids. */
  readonly uid: number | null;
  readonly force?: boolean;
  /** No shell. `detail` is the standard output, or the reason for the failure. */
  readonly run: (
    argv: readonly string[],
  ) => Promise<{ readonly ok: boolean; readonly detail: string }>;
}

/** `line` is for the start-up banner. */
export type Registration = { readonly line: string } & (
  | { readonly status: 'registered'; readonly replaced: string | null }
  | { readonly status: 'already_registered' | 'updated' | 'skipped' | 'refused' }
  | { readonly status: 'taken'; readonly by: string }
  | { readonly status: 'failed'; readonly reason: string }
);

export interface Removal {
  readonly status: 'removed' | 'not_registered' | 'refused' | 'failed';
  readonly line: string;
}

export const registered = (replaced: string | null): Registration => ({
  status: 'registered',
  replaced,
  line: `registered: agent:// links now open here${replaced === null ? '' : ` instead of with ${replaced}`}`,
});

export const alreadyRegistered: Registration = {
  status: 'already_registered',
  line: 'already registered: agent:// links open here',
};

export const updated = (script: string): Registration => ({
  status: 'updated',
  line: `updated: agent:// links now open with ${script}`,
});

export const skipped: Registration = {
  status: 'skipped',
  line: 'not registered: this machine has no desktop (neither DISPLAY nor WAYLAND_DISPLAY is set)',
};

export const taken = (by: string): Registration => ({
  status: 'taken',
  by,
  line: `not registered: ${by} opens agent:// links; agent register-handler --force replaces it`,
});

export const removed = (what: string): Removal => ({ status: 'removed', line: `removed: ${what}` });

export const notRegistered: Removal = {
  status: 'not_registered',
  line: 'nothing to remove: this program was not registered',
};

/** @returns the output. @throws Error with the reason for a failure */
export const mustRun = async (
  { run }: HandlerEnvironment,
  argv: readonly string[],
): Promise<string> => {
  const { ok, detail } = await run(argv);
  if (!ok) throw new Error(`${argv[0]} failed: ${detail}`);
  return detail.trim();
};
