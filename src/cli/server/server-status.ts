import { existsSync } from 'node:fs';
import { isJsonObject, textIn } from '../../machines/json.ts';
import { messageOf } from '../../machines/message-of.ts';
import type { CommandContext } from '../client/command-context.ts';
import { findServer, refusedConfigOf } from '../client/find-server.ts';
import { getJson } from '../client/http-request.ts';
import type { Address } from '../client/transport.ts';
import { stateFiles } from '../config/places/project.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { stripControls } from '../output/safe-text.ts';
import { readServerFile, type ServerFile } from './server-file.ts';

const healthMs = 5_000;

type StatusRow = readonly [name: string, value: string | null];

const checksOf = (health: unknown): readonly StatusRow[] => {
  const checks = isJsonObject(health) && isJsonObject(health['checks']) ? health['checks'] : {};
  return Object.entries(checks).map(([name, check]) => [
    name,
    `${textIn(check, 'status')}: ${(textIn(check, 'detail') ?? '').replace(/^none: /, '')}`,
  ]);
};

export const faultsOf = async (address: Address): Promise<readonly string[]> => {
  try {
    const health = await getJson(address, '/health', healthMs);
    const failing = checksOf(health).filter(([, value]) => !value?.startsWith('ok'));
    return textIn(health, 'status') === 'healthy'
      ? []
      : failing.map(([name, value]) => `its ${name} ${name.endsWith('s') ? 'are' : 'is'} ${value}`);
  } catch (error) {
    return [`it does not answer: ${messageOf(error)}`];
  }
};

const renderServerStatus = (
  url: string,
  file: ServerFile | null,
  health: unknown,
  log: string | null,
): string => {
  const rows: readonly StatusRow[] = [
    ['project', file?.project ?? null],
    ['pid', file === null ? null : String(file.pid)],
    ['since', file?.started_at ?? null],
    ['version', file?.version ?? null],
    ...checksOf(health),
    ['log', log],
  ];
  const lines = rows.flatMap(([name, value]) =>
    value === null ? [] : [`  ${name.padEnd(10)} ${stripControls(value)}`],
  );
  return [`${url} is ${textIn(health, 'status')}`, ...lines].join('\n');
};

/** Prints the address, health and log of the server. Exit code 6 if none runs. */
export const statusOfServer = async ({ project, io, json }: CommandContext): Promise<number> => {
  const files = stateFiles(project.stateDir);
  const log = existsSync(files.log) ? files.log : null;
  const address = await findServer(project);
  if (address === null) {
    const where = log === null ? '' : ` (log of the last one: ${log})`;
    if (json) io.json({ running: false, log });
    else io.out(`no server runs for ${project.root}${where}`);
    return exitCodes.unavailable;
  }
  const file = readServerFile(files.server);
  const health = await getJson(address, '/health', healthMs);
  const refused = address.refusesConfig === true ? await refusedConfigOf(address) : undefined;
  if (json) io.json({ running: true, ...file, log, health, config_refused: refused });
  else io.out(renderServerStatus(address.url, file, health, log));
  if (!json && refused !== undefined) io.err(`warning: ${refused}`);
  return exitCodes.done;
};
