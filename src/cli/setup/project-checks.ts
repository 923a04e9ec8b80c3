import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { type Priced, priceOf } from '../../actors/model/price-table.ts';
import type { Entry } from '../../actors/store/port.ts';
import { whyUnsigned } from '../../actors/workspace/git/signing.ts';
import { isJsonObject, parseJson } from '../../machines/json.ts';
import { plural } from '../../machines/plural.ts';
import type { CommandContext } from '../client/command-context.ts';
import { createHttpClient } from '../client/http-client.ts';
import { getJson } from '../client/http-request.ts';
import { hasTasks, openTasks } from '../client/open-tasks.ts';
import { redactorFor } from '../client/redactor.ts';
import type { Address } from '../client/transport.ts';
import type { LoadedConfig } from '../config/config.ts';
import { askedPlace, placeOfModel, withChosenModel } from '../config/providers.ts';
import type { Config } from '../config/schema/config-schema.ts';
import { pricesFrom } from '../config/settings.ts';
import { storeFor } from '../config/store.ts';
import { oneLine } from '../output/safe-text.ts';
import type { Check } from './backend-checks.ts';

/** Of the newest, since older turns say nothing about the settings of today. */
const entriesAtMost = 5_000;
const turnsLookedAt = 10;
/** Providers keep no shorter beginning of a conversation. */
const shortestCached = 4_096;

const turnSchema = z.object({
  turn: z.number(),
  model: z.string(),
  ok: z.literal(true),
  input_tokens: z.number(),
  cached_tokens: z.number(),
});
type Turn = z.infer<typeof turnSchema>;

/** The first turn of an attempt has nothing to read. */
const turnIn = ({ type, data }: Entry): readonly Turn[] => {
  if (type !== 'api_call_complete') return [];
  const { data: turn } = turnSchema.safeParse(parseJson(data));
  return turn !== undefined && turn.turn > 1 ? [turn] : [];
};

/** Models whose last ten turns read nothing, although they could have. */
const modelsWithoutReads = (entries: readonly Entry[]): readonly string[] => {
  const byModel = new Map<string, Turn[]>();
  for (const turn of entries.flatMap(turnIn))
    if (turn.input_tokens >= shortestCached)
      byModel.set(turn.model, [...(byModel.get(turn.model) ?? []), turn].slice(-turnsLookedAt));
  return [...byModel].flatMap(([model, turns]) =>
    turns.length === turnsLookedAt && turns.every((turn) => turn.cached_tokens === 0)
      ? [model]
      : [],
  );
};

const newestEntries = async (
  { project, env }: CommandContext,
  { config }: LoadedConfig,
): Promise<readonly Entry[]> => {
  const choice = storeFor(config, project, env);
  if (!hasTasks(project, choice)) return [];
  const redact = redactorFor({ project, env }, config);
  const { store } = await openTasks(project, { kept: true, choice, redact, log: () => {} });
  try {
    const after = Math.max(0, (await store.lastSeq()) - entriesAtMost);
    return await store.read({ after, limit: entriesAtMost });
  } finally {
    store.close();
  }
};

/** Warns of models that would cost less with a cache, and read nothing from one. @throws StoreError */
export const cacheChecks = async (
  context: CommandContext,
  loaded: LoadedConfig,
): Promise<readonly Check[]> => {
  const chosen = withChosenModel(loaded, context.env);
  const priced: Priced = {
    prices: pricesFrom(chosen),
    placeOf: (name) => askedPlace(chosen, name),
  };
  return modelsWithoutReads(await newestEntries(context, loaded)).flatMap((model) => {
    const price = priceOf(priced, model);
    const { provider } = placeOfModel(chosen.config, model, context.env);
    const isOff = provider.type === 'anthropic' && provider.cache === 'off';
    if (price === undefined || price.cachedInput >= price.input || isOff) return [];
    return [
      {
        check: 'cache',
        status: 'note',
        detail: `${model}: its last ${turnsLookedAt} turns read nothing from a cache, so input costs $${price.input} and not $${price.cachedInput} for a million tokens; a gateway at providers.${provider.name}.base_url may change or drop what is sent, or turns are more than five minutes apart (Anthropic: set providers.${provider.name}.cache to 1h)`,
      },
    ];
  });
};

const askMs = 5_000;

const toldSchema = z.object({
  interrupted: z
    .array(z.object({ taskId: z.string().nullable(), message: z.string(), isLeft: z.boolean() }))
    .default([]),
});

/** What the running server found at its start. @throws CallError */
export const interruptedChecks = async (address: Address): Promise<readonly Check[]> => {
  const { data } = toldSchema.safeParse(await getJson(address, '/surroundings', askMs));
  return (data?.interrupted ?? []).map(({ taskId, message, isLeft }) => ({
    check: 'quarantine',
    status: isLeft ? 'problem' : 'note',
    detail: taskId === null ? message : `${taskId}: ${message}`,
  }));
};

/** `npm init` writes it. */
const noTest = 'no test specified';

const hasNpmTest = (text: string): boolean => {
  try {
    const parsed: unknown = JSON.parse(text);
    const scripts = isJsonObject(parsed) ? parsed['scripts'] : null;
    const test = isJsonObject(scripts) ? scripts['test'] : null;
    return typeof test === 'string' && !test.includes(noTest);
  } catch {
    return false;
  }
};

/** A file at the top of a project, and the command that tests such a project. */
const known: readonly (readonly [string, (text: string) => boolean, string])[] = [
  ['package.json', hasNpmTest, 'npm test'],
  ['Makefile', (text) => /^(test|check)\s*:/m.test(text), 'make test'],
  ['pyproject.toml', (text) => text.includes('pytest'), 'python3 -m pytest'],
  ['Cargo.toml', () => true, 'cargo test'],
  ['go.mod', () => true, 'go test ./...'],
];

/** The command that this project seems to be tested with; null: none is seen. */
const testCommandOf = async (root: string): Promise<string | null> => {
  for (const [file, fits, command] of known) {
    const text = await readFile(join(root, file), 'utf8').catch(() => null);
    if (text !== null && fits(text)) return command;
  }
  return null;
};

/** Says how merges are tested, and proposes a command where they are not. */
export const mergeCheck = async (
  root: string,
  { merge }: Config,
  env: NodeJS.ProcessEnv,
): Promise<Check> => {
  const { verify } = merge;
  const why = merge.sign ? await whyUnsigned('git', env) : null;
  if (why !== null)
    return {
      check: 'merge',
      status: 'problem',
      detail: `your git signs no commit (merge.sign): ${why}; set user.signingKey in your own git configuration, or agent config set merge.sign false`,
    };
  if (verify.length > 0)
    return { check: 'merge', status: 'ok', detail: `tested with ${verify.join(', ')}` };
  const command = (await testCommandOf(root)) ?? '<your tests>';
  const set = `agent config set merge.verify '${JSON.stringify([command])}'`;
  return {
    check: 'merge',
    status: 'note',
    detail: `what lands on your branch is tested only with a task's own --verify; to test all of it: ${set}`,
  };
};

/** How the issues that become tasks are followed, by source. */
export const sourceChecks = async (address: Address): Promise<readonly Check[]> => {
  const { sources } = await createHttpClient(address).call('sources', {});
  return sources.map(({ repository, labels, state, issues = 0, problem }) => {
    const of = labels.length === 0 ? '' : ` with ${labels.join(', ')}`;
    const name = `github ${repository ?? 'issues of the forge'}${of}`;
    const how = problem === undefined ? plural(issues, 'open issue') : problem;
    return {
      check: 'source',
      status: problem === undefined && state === 'reading' ? 'ok' : 'problem',
      detail: oneLine(`${name}: ${state}; ${how}`, 500),
    };
  });
};
