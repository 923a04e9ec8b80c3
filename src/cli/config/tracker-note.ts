import { appendFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { findBdData } from '../../actors/ledger/ownership.ts';
import { programOnPath } from '../../actors/tracker/bd/program.ts';
import { isJsonObject, textIn } from '../../machines/json.ts';
import type { Connection } from '../client/connect.ts';
import { findServer } from '../client/find-server.ts';
import { getJson } from '../client/http-request.ts';
import { configNow } from './config.ts';
import { type Project, readTrimmedOrNull, stateFiles } from './places/project.ts';
import type { ChosenConfig } from './providers.ts';
import { type Config, configSchema } from './schema/config-schema.ts';

/** The modes in which bd would keep the tasks if it were installed. */
const modesWithBd: readonly string[] = ['auto', 'bd'];

/** bd is recommended, not required. Null when it is installed, or the configuration has no use for it. */
export const trackerNote = (
  { tracker: { mode, bd_path } }: Config,
  env: NodeJS.ProcessEnv,
  projectRoot: string,
): string | null => {
  if (!modesWithBd.includes(mode) || bd_path !== undefined) return null;
  if (programOnPath('bd', env) !== null) return null;
  const sign = findBdData(join(projectRoot, '.beads'));
  return sign === undefined
    ? "warning: the tracker 'bd' is not installed; the built-in one keeps the tasks"
    : `warning: the tracker 'bd' is not installed; it keeps the tasks (.beads/${sign})`;
};

/** One line for each project that was told: several may share the folder. */
const isNoted = (
  { root, stateDir }: Project,
  file: 'noted' | 'limitsNoted' | 'choiceNoted' = 'noted',
  line = root,
): boolean => readTrimmedOrNull(stateFiles(stateDir)[file])?.split('\n').includes(line) === true;

/** Where nothing can be written, it is said again. */
const remember = (
  { root, stateDir }: Project,
  file: 'noted' | 'limitsNoted' | 'choiceNoted' = 'noted',
  line = root,
): void => {
  if (!existsSync(stateDir)) return;
  try {
    appendFileSync(stateFiles(stateDir)[file], `${line}\n`, { mode: 0o600 });
  } catch {}
};

export interface NoteOptions {
  readonly project: Project;
  readonly config: string | undefined;
  readonly env: NodeJS.ProcessEnv;
  readonly json: boolean;
  readonly say: (text: string) => void;
}

/**
 * Says it, `once` in a project or `always`, then runs the command. A configuration that is not valid
 * is the command's to name: a server that runs goes on with the one before.
 */
export const withTrackerNote = async (
  when: 'once' | 'always',
  { project, config, env, json, say }: NoteOptions,
  run: () => Promise<number>,
): Promise<number> => {
  const isWanted = !json && (when === 'always' || !isNoted(project));
  const loaded = isWanted ? configNow({ config, project }, env) : null;
  const note = loaded === null ? null : trackerNote(loaded, env, project.root);
  if (note === null) return run();
  say(note);
  try {
    return await run();
  } finally {
    if (when === 'once') remember(project);
  }
};

/** The limits that hold where none of cost is set. Null: one is, or nothing is paid. */
const limitsNote = async (chosen: ChosenConfig, args: object): Promise<string | null> => {
  const { config } = chosen;
  const { agent, api, budget, roles, server } = config;
  const { model, role, 'max-cost': maxCost }: { readonly [flag: string]: unknown } = { ...args };
  const limits = [
    maxCost,
    agent.max_cost_usd,
    budget.run_usd,
    budget.day_usd,
    budget.month_usd,
    ...Object.values(roles).map((own) => own?.max_cost_usd),
  ];
  const ofRole = Object.entries(roles).find(([each]) => each === role)?.[1]?.model;
  const name = typeof model === 'string' ? model : (ofRole ?? api.provider_model);
  // Loaded only where it is needed: the table takes 50 ms.
  const [{ askedPlace }, { tablePrice }] = await Promise.all([
    import('./providers.ts'),
    import('../../actors/model/price-table.ts'),
  ]);
  const price = api.prices[name];
  const place = askedPlace(chosen, name);
  const isFree =
    [model, api.backend, name].includes('scripted') ||
    (price?.input_per_million === 0 && price.output_per_million === 0);
  if (isFree || limits.some((limit) => limit !== undefined)) return null;
  const tokens = agent.max_tokens_total.toLocaleString('en');
  const priceFirst =
    price === undefined && tablePrice(place.model, place.baseUrl) === undefined
      ? `agent config set 'api.prices."${name}"' '{"input_per_million": <usd>, "output_per_million": <usd>}', then `
      : '';
  return `note: no limit of cost is set; an attempt ends after ${agent.max_turns} turns, ${tokens} tokens or its time limit, and ${server.max_concurrent_agents} run at once. To limit the cost: ${priceFirst}agent config set budget.day_usd <usd>, or --max-cost <usd>`;
};

const surroundingsMs = 3_000;

/** Nulls where no server runs, or it is one of another version. */
const askServer = async (project: Project) => {
  const address = await findServer(project);
  const told = address === null ? null : await getJson(address, '/surroundings', surroundingsMs);
  const config = configSchema.safeParse(isJsonObject(told) ? told['config'] : null).data ?? null;
  const defaultProvider = textIn(told, 'default_provider');
  return {
    chosen: config === null ? null : { config, defaultProvider: defaultProvider ?? undefined },
    choice: textIn(told, 'choice'),
  };
};

const startsRun = (method: string, params: unknown, answer: unknown): boolean => {
  if (method === 'execute') return true;
  if (method !== 'run' || (isJsonObject(params) && params['dry_run'] === true)) return false;
  const accepted = isJsonObject(answer) ? answer['accepted'] : null;
  return Array.isArray(accepted) && accepted.length > 0;
};

/**
 * Says once in a project, when the server has accepted a paid run, which limits hold there, and
 * which model a key has chosen.
 */
export const withLimitsNote = (
  connection: Connection,
  { project, say }: Pick<NoteOptions, 'project' | 'say'>,
  args: object,
): Connection => {
  const note = async (params: unknown): Promise<void> => {
    const nothing = { chosen: null, choice: null };
    const { chosen, choice } = await askServer(project).catch(() => nothing);
    const line = `${project.root}\t${choice}`;
    const names = 'model' in args && args.model !== undefined;
    if (choice !== null && !names && !isNoted(project, 'choiceNoted', line)) {
      say(`note: ${choice}`);
      remember(project, 'choiceNoted', line);
    }
    if (chosen === null || isNoted(project, 'limitsNoted')) return;
    const text = await limitsNote(chosen, { ...args, role: textIn(params, 'role') });
    if (text === null) return;
    say(text);
    remember(project, 'limitsNoted');
  };
  return {
    ...connection,
    server: async () => {
      const client = await connection.server();
      return {
        ...client,
        call: async (method, params) => {
          const answer = await client.call(method, params);
          if (startsRun(method, params, answer)) await note(params);
          return answer;
        },
      };
    },
  };
};
