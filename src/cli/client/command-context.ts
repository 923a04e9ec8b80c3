import { findProject } from '../config/project.ts';
import type { Common } from '../declarations/command.ts';
import type { Invocation } from '../invocation.ts';
import type { Io } from '../output/io.ts';
import type { CommandContext } from '../tasks/commands.ts';
import { connect } from './connect.ts';

const once = <Value>(make: () => Value): (() => Value) => {
  let made: { readonly value: Value } | null = null;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
};

/**
 * The project is looked for when it is needed: a file is verified in any folder. Its fields throw
 * UsageError when the project folder cannot be used.
 */
export const createContext = (
  { project: folder, config, start, json }: Common,
  { cwd, env }: Invocation,
  io: Io,
): CommandContext => {
  const project = once(() => findProject(folder, cwd, env));
  const connection = once(() => connect({ project: project(), config, start, io, env }));
  return {
    ...{ cwd, io, env, json },
    get project() {
      return project();
    },
    get connection() {
      return connection();
    },
  };
};
