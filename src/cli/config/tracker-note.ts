import { appendFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { findBdData } from '../../actors/ledger/ownership.ts';
import { programOnPath } from '../../actors/tracker/bd/program.ts';
import { configNow } from './config.ts';
import { type Project, readTrimmedOrNull, stateFiles } from './places/project.ts';
import type { Config } from './schema/config-schema.ts';

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
const isNoted = ({ root, stateDir }: Project, file: 'noted' | 'limitsNoted' = 'noted'): boolean =>
  readTrimmedOrNull(stateFiles(stateDir)[file])?.split('\n').includes(root) === true;

/** Where nothing can be written, it is said again. */
const remember = ({ root, stateDir }: Project, file: 'noted' | 'limitsNoted' = 'noted'): void => {
  if (!existsSync(stateDir)) return;
  try {
    appendFileSync(stateFiles(stateDir)[file], `${root}\n`, { mode: 0o600 });
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
export const limitsNote = (
  { agent, api, budget, roles, server }: Config,
  args: object,
): string | null => {
  const {
    model,
    'max-cost': maxCost,
    'dry-run': isPlan,
  }: { readonly [flag: string]: unknown } = {
    ...args,
  };
  const limits = [
    ...[maxCost, agent.max_cost_usd, budget.run_usd, budget.day_usd, budget.month_usd],
    ...Object.values(roles).map((own) => own?.max_cost_usd),
  ];
  const isFree = [model, api.backend, model ?? api.provider_model].includes('scripted');
  if (isPlan === true || isFree || limits.some((limit) => limit !== undefined)) return null;
  const tokens = agent.max_tokens_total.toLocaleString('en');
  const name = typeof model === 'string' ? model : api.provider_model;
  const price =
    name in api.prices
      ? ''
      : `agent config set 'api.prices."${name}"' '{"input_per_million": <usd>, "output_per_million": <usd>}', then `;
  return `note: no limit of cost is set; an attempt ends after ${agent.max_turns} turns, ${tokens} tokens or its time limit, and ${server.max_concurrent_agents} run at once. To limit the cost: ${price}agent config set budget.day_usd <usd>, or --max-cost <usd>`;
};

/** Says it before the first paid run of a project, then runs the command. */
export const withLimitsNote = async (
  { project, config, env, say }: Omit<NoteOptions, 'json'>,
  args: object,
  run: () => Promise<number>,
): Promise<number> => {
  const loaded = isNoted(project, 'limitsNoted') ? null : configNow({ config, project }, env);
  const note = loaded === null ? null : limitsNote(loaded, args);
  if (note === null) return run();
  say(note);
  try {
    return await run();
  } finally {
    remember(project, 'limitsNoted');
  }
};
