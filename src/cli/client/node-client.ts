import { findProject } from '../config/places/project.ts';
import { CallError } from './client.ts';
import { connect } from './connect.ts';
import { type TaskClient, taskClientOf } from './task-client.ts';

export interface OpenOptions {
  /** Starts a server when none runs; default: true. */
  readonly start?: boolean;
  /** The configuration of a server that is started. */
  readonly config?: string;
  /** Default: the environment of this process. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/**
 * Finds the server of a project, as `agent` does, and starts one when none runs.
 *
 * @param folder a folder of the project
 * @throws CallError
 */
export const openProject = async (
  folder: string,
  { start = true, config, env = process.env }: OpenOptions = {},
): Promise<TaskClient> => {
  const project = findProject(folder, process.cwd(), env);
  const io = { err: () => {}, live: () => {} };
  const connection = connect({ project, config, start, env, io });
  return taskClientOf(await connection.server().catch(inWordsOfOptions));
};

/** The errors of commands speak of flags. */
const inWordsOfOptions = (error: unknown): never => {
  if (!(error instanceof CallError) || error.code !== 'server_needed') throw error;
  throw new CallError(
    error.code,
    'no server runs for this project; leave out start: false, or start one with: agent server start',
    error.facts,
    error,
  );
};
