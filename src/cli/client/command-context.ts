import { findProject } from '../config/project.ts';
import type { Invocation } from '../invocation.ts';
import type { Io } from '../output/io.ts';
import type { Common } from '../table/command.ts';
import type { CommandContext } from '../tasks/commands.ts';
import { connect } from './connect.ts';

/** @throws UsageError when the project folder cannot be used */
export const createContext = (
  { project: folder, config, start, json }: Common,
  { cwd, env }: Invocation,
  io: Io,
): CommandContext => {
  const project = findProject(folder, cwd, env);
  const connection = connect({ project, config, start, io, env });
  return { project, cwd, connection, io, env, json };
};
