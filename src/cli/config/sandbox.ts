import { createBubblewrap } from '../../actors/sandbox/bubblewrap.ts';
import type { Sandbox } from '../../actors/sandbox/port.ts';
import { createNoSandbox } from '../../actors/sandbox/run-sandboxed.ts';
import { createSharedFolders, type SharedFolders } from '../../actors/sandbox/shared-folder.ts';
import { ConfigError } from './config-error.ts';
import { type Project, stateFiles } from './places/project.ts';
import type { Config } from './schema/config-schema.ts';

/** For a server, which alone runs commands in the project folder. */
export const projectFolders = ({ stateDir }: Project): SharedFolders => {
  const { quarantine, commands } = stateFiles(stateDir);
  return createSharedFolders({ quarantine, records: commands });
};

const otherFolders = ({ stateDir }: Project): SharedFolders =>
  createSharedFolders({ quarantine: stateFiles(stateDir).quarantine, records: null });

/** @throws ConfigError when a required sandbox does not work */
export const sandboxFor = (
  { sandbox: { mode, network, read_paths, memory_mb } }: Config,
  project: Project,
  folders = otherFolders(project),
): Sandbox => {
  if (mode === 'off') return createNoSandbox();
  const memoryBytes = memory_mb === 0 ? null : memory_mb * 1024 ** 2;
  const sandbox = createBubblewrap({
    readPaths: read_paths,
    network,
    memoryBytes,
    folders,
    settingsFolder: stateFiles(project.stateDir).etc,
    homesFolder: stateFiles(project.stateDir).homes,
  });
  const { ok, detail } = sandbox.check();
  if (mode === 'required' && !ok) throw new ConfigError(`sandbox.mode is required, but ${detail}`);
  return sandbox;
};
