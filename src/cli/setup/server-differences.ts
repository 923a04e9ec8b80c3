import { spawnSync } from 'node:child_process';
import { delimiter } from 'node:path';
import { z } from 'zod';
import { childEnvironment } from '../../actors/process/run-command.ts';
import { programOnPath } from '../../actors/tracker/bd/program.ts';
import { getJson } from '../client/http-request.ts';
import type { Address } from '../client/transport.ts';
import { originOf, valueAt } from '../config/key-paths.ts';
import { configKeys } from '../config/schema/config-keys.ts';
import { oneLine } from '../output/safe-text.ts';
import type { ServerSurroundings } from '../server/surroundings.ts';

const askMs = 5_000;
const versionMs = 5_000;
const differencesAtMost = 10;

const surroundingsSchema = z.object({
  node: z.string(),
  path: z.string(),
  keys: z.array(z.string()),
  config: z.record(z.string(), z.unknown()),
  layers: z.array(z.object({ source: z.string(), tree: z.record(z.string(), z.unknown()) })),
});
type Told = z.infer<typeof surroundingsSchema>;

const foldersOfServer = (path: string): readonly string[] => [
  ...new Set(path.split(delimiter).filter((folder) => folder !== '')),
];

const listed = (items: readonly string[]): string =>
  items.length <= differencesAtMost
    ? items.join(', ')
    : `${items.slice(0, differencesAtMost).join(', ')} and ${items.length - differencesAtMost} more`;

const without = (some: readonly string[], others: readonly string[]): readonly string[] =>
  some.filter((one) => !others.includes(one));

const pathDifferences = (here: string, there: string): readonly string[] => {
  const [own, other] = [foldersOfServer(here), foldersOfServer(there)];
  const [missing, added] = [without(own, other), without(other, own)];
  return [
    ...(missing.length === 0 ? [] : [`its PATH has no ${listed(missing)}`]),
    ...(added.length === 0 ? [] : [`its PATH has ${listed(added)}, and this shell has not`]),
  ];
};

/** The assistants, and programs that agents and the server run. */
const programs = ['codex', 'claude', 'bd', 'git', 'node', 'npm'];

/** The first line of `--version`, outside the project, without keys. */
const versionOf = (program: string, path: string, env: NodeJS.ProcessEnv): string => {
  const { stdout, status } = spawnSync(program, ['--version'], {
    cwd: '/',
    env: { ...childEnvironment(env), PATH: path },
    encoding: 'utf8',
    timeout: versionMs,
    killSignal: 'SIGKILL',
    maxBuffer: 64 * 1024,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [line = ''] = (stdout ?? '').split('\n');
  return status === 0 && line !== '' ? `${program} (${oneLine(line, 60)})` : program;
};

const programDifferences = (
  here: string,
  there: string,
  env: NodeJS.ProcessEnv,
): readonly string[] =>
  programs.flatMap((name) => {
    const [own, other] = [here, there].map((PATH) => programOnPath(name, { PATH })?.path);
    if (own === other) return [];
    const [shown, found] = [
      own === undefined ? 'none' : versionOf(own, here, env),
      other === undefined ? 'none' : versionOf(other, there, env),
    ];
    return [`${name} is ${found} for it, and ${shown} in this shell`];
  });

const keyDifferences = (here: readonly string[], there: readonly string[]): readonly string[] => [
  ...without(here, there).map((name) => `it has no ${name}, which is set in this shell`),
  ...without(there, here).map((name) => `it has ${name}, which is not set in this shell`),
];

const shownValue = (value: unknown): string =>
  value === undefined ? 'not set' : oneLine(JSON.stringify(value), 60);

/** A flag of the server is meant for it alone, such as the port of a server in the background. */
const configDifferences = (here: ServerSurroundings, there: Told): readonly string[] =>
  configKeys().flatMap(([key]) => {
    const [own, other] = [valueAt(here.config, key), valueAt(there.config, key)];
    if (JSON.stringify(own) === JSON.stringify(other)) return [];
    const [from, origin] = [originOf(here.layers, key), originOf(there.layers, key)];
    if (origin.startsWith('--')) return [];
    return [
      `${key} is ${shownValue(other)} (${origin}) for it, and ${shownValue(own)} (${from}) here`,
    ];
  });

/** A sentence for each thing that the running server took from another shell. @throws CallError */
export const differencesFrom = async (
  here: ServerSurroundings,
  address: Address,
  env: NodeJS.ProcessEnv,
): Promise<readonly string[]> => {
  const told = surroundingsSchema.safeParse(await getJson(address, '/surroundings', askMs));
  if (!told.success)
    return [
      'how it differs is not known: it is another version, or your token has not the right admin',
    ];
  const there = told.data;
  const all = [
    ...(here.node === there.node ? [] : [`it runs node ${there.node}, this is ${here.node}`]),
    ...pathDifferences(here.path, there.path),
    ...programDifferences(here.path, there.path, env),
    ...keyDifferences(here.keys, there.keys),
    ...configDifferences(here, there),
  ];
  const more = all.length - 2 * differencesAtMost;
  return more <= 0 ? all : [...all.slice(0, 2 * differencesAtMost), `and ${more} more`];
};
