import type { Project } from '../config/places/project.ts';
import type { Io } from '../output/io.ts';
import type { Connection } from './connect.ts';

export interface CommandContext {
  readonly project: Project;
  /** The folder of relative paths on the command line. */
  readonly cwd: string;
  /** The file of `--config` or `AGENT_SERVER_CONFIG`. */
  readonly config: string | null;
  readonly connection: Connection;
  readonly io: Io;
  readonly env: NodeJS.ProcessEnv;
  readonly json: boolean;
}
