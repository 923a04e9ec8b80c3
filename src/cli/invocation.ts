import type { Address } from './client/transport.ts';
import type { Project } from './config/places/project.ts';

/** Starts a server and waits until it answers. */
export type StartServer = (
  project: Project,
  config: string | undefined,
  env: NodeJS.ProcessEnv,
) => Promise<Address>;

export interface Invocation {
  readonly words: readonly string[];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** By default a server is a detached process. */
  readonly startServer?: StartServer;
  /** Of `--token-file` or AGENT_TOKEN. */
  readonly token?: string;
}
