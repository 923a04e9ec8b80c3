import { join } from 'node:path';
import { createBubblewrap } from '../../actors/sandbox/bubblewrap.ts';
import { createNoSandbox } from '../../actors/sandbox/no-sandbox.ts';
import type { Sandbox } from '../../actors/sandbox/port.ts';
import { ConfigError } from './config-error.ts';
import type { Config } from './config-schema.ts';
import type { Project } from './project.ts';

/** @throws ConfigError when a required sandbox does not work */
export const sandboxFor = (
  { sandbox: { mode, network, read_paths, memory_mb } }: Config,
  { stateDir }: Project,
): Sandbox => {
  if (mode === 'off') return createNoSandbox();
  const memoryBytes = memory_mb === 0 ? null : memory_mb * 1024 ** 2;
  const sandbox = createBubblewrap({
    ...{ readPaths: read_paths, network, memoryBytes },
    quarantine: join(stateDir, 'quarantine'),
  });
  const { ok, detail } = sandbox.check();
  if (mode === 'required' && !ok) throw new ConfigError(`sandbox.mode is required, but ${detail}`);
  return sandbox;
};
