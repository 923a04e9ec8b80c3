import { readFileSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import {
  createHostRules,
  type NetworkAccess,
  narrowAccess,
  normalHost,
} from '../../actors/network/access.ts';
import { addressKind } from '../../actors/network/addresses.ts';
import { parseWithProblems } from '../../http/schema-problems.ts';
import { isJsonObject, parseJson } from '../../machines/json.ts';
import { messageOf } from '../../machines/message-of.ts';
import { ConfigError } from './config-error.ts';
import type { ConfigLayer } from './key-paths.ts';
import { configKeys, partsOfKey } from './schema/config-keys.ts';
import { type Config, configSections } from './schema/config-schema.ts';
import { policyBounds } from './schema/policy-schema.ts';

/** Rules of an organisation, which no configuration of a user loosens. */
export interface Policy {
  readonly file: string;
  /** A part of a configuration. */
  readonly require: Readonly<Record<string, unknown>>;
  /** By key. */
  readonly atMost: Readonly<Record<string, number>>;
  readonly only: Config['policy']['only'];
}

type Tree = Readonly<Record<string, unknown>>;
type Path = readonly string[];
type Value = readonly [path: Path, value: unknown];

const shippedFile = '/etc/agent-task-server/policy.json';
const bytesAtMost = 1024 * 1024;

const policySchema = z.strictObject({
  require: z.record(z.string(), z.unknown()).default({}),
  ...policyBounds.shape,
});

/** Values that `0` makes unlimited. */
const unlimitedAtZero: ReadonlySet<string> = new Set([
  'sandbox.memory_mb',
  'agent.answer_timeout_seconds',
]);

/** Values from the strictest to the loosest. */
const strictestFirst: Readonly<Record<string, readonly unknown[]>> = {
  'sandbox.mode': ['required', 'auto', 'off'],
  'sandbox.assistants': ['on', 'off'],
  'sandbox.home': ['empty', 'copy'],
  'sandbox.allow_task_network': [false, true],
  'workspace.mode': ['worktree', 'shared'],
  'server.auth': ['token', 'none'],
  'forge.publish': ['never', 'when_complete'],
  'policy.merge': ['not_author', 'anyone'],
};

/** Lists to which a user may add. */
const addedTo: ReadonlySet<string> = new Set(['require_approval', 'verify']);

const isNetworkKey = (path: Path): boolean => path.at(-1) === 'network';

const strictest = (path: Path, mine: unknown, wanted: unknown): unknown => {
  if (isNetworkKey(path) && mine !== undefined)
    return narrowAccess(mine as NetworkAccess, wanted as NetworkAccess);
  const order = strictestFirst[path.join('.')];
  if (order?.includes(mine)) return order[Math.min(order.indexOf(mine), order.indexOf(wanted))];
  const isList = Array.isArray(mine) && Array.isArray(wanted) && addedTo.has(path.at(-1) ?? '');
  return isList ? [...new Set([...wanted, ...mine])] : wanted;
};

const leavesOf = (tree: unknown, path: Path = []): readonly Value[] =>
  isJsonObject(tree)
    ? Object.entries(tree).flatMap(([key, inner]) => leavesOf(inner, [...path, key]))
    : [[path, tree]];

const withLeaf = (tree: Tree, [first = '', ...rest]: Path, value: unknown): Tree => {
  const inner = tree[first];
  const below = isJsonObject(inner) ? inner : {};
  return { ...tree, [first]: rest.length === 0 ? value : withLeaf(below, rest, value) };
};

const at = (tree: unknown, path: Path): unknown =>
  path.reduce<unknown>((value, part) => (isJsonObject(value) ? value[part] : undefined), tree);

/** The key by which a role has its own value of a setting; null: no role has. */
const roleKeyOf = (path: Path): string | null => {
  const [section, key = ''] = path;
  const isOfRoles = section === 'agent' || path.join('.') === 'sandbox.network';
  return path.length === 2 && isOfRoles ? key : null;
};

/** The same setting where a role has its own. */
const ofRoles = ({ roles }: Config, path: Path): readonly Path[] => {
  const key = roleKeyOf(path);
  if (key === null) return [];
  return Object.entries(roles).flatMap(([role, own]) =>
    at(own, [key]) === undefined ? [] : [['roles', role, key]],
  );
};

/** What the file of a role sets, which is no layer, under the same rules. */
export const heldByPolicies = <Parts extends object>(
  parts: Parts,
  { policies }: Pick<Policies, 'policies'>,
): Parts => {
  const held = { ...parts };
  for (const [path, wanted] of policies.flatMap(({ require }) => leavesOf(require))) {
    const key = roleKeyOf(path);
    const mine = key === null ? undefined : at(held, [key]);
    if (key !== null && mine !== undefined)
      Object.assign(held, { [key]: strictest(path, mine, wanted) });
  }
  return held;
};

const limitedAt = (path: Path, mine: unknown, limit: number): number => {
  const isUnlimited = mine === 0 && unlimitedAtZero.has(path.join('.'));
  return typeof mine === 'number' && !isUnlimited ? Math.min(mine, limit) : limit;
};

const isCovered = (name: string, patterns: readonly string[]): boolean =>
  patterns.some((each) =>
    each.endsWith('*') ? name.startsWith(each.slice(0, -1)) : name === each,
  );

/** What a file adds to the section `policy`, which a user may have narrowed. */
const sectionOf = ({ only: mine, at_most }: Config['policy'], { only, atMost }: Policy): Tree => {
  const kept = (given: readonly string[] | undefined, allowed: readonly string[] | undefined) =>
    allowed === undefined ? given : (given?.filter((each) => isCovered(each, allowed)) ?? allowed);
  const hosts = narrowAccess(mine.hosts ?? true, only.hosts ?? true);
  const limits = Object.entries(atMost).map(([key, limit]): readonly [string, number] => [
    key,
    Math.min(at_most[key] ?? limit, limit),
  ]);
  return {
    only: Object.fromEntries(
      Object.entries({
        providers: kept(mine.providers, only.providers),
        models: kept(mine.models, only.models),
        hosts: typeof hosts === 'boolean' ? undefined : hosts,
      }).filter(([, list]) => list !== undefined),
    ),
    at_most: Object.fromEntries(limits),
  };
};

const changedIn = (config: Config, values: readonly Value[]): Tree =>
  values.reduce<Tree>(
    (tree, [path, value]) =>
      isDeepStrictEqual(at(config, path), value) ? tree : withLeaf(tree, path, value),
    {},
  );

/** What a file sets over a configuration, which keeps what is stricter. */
const forcedBy = (config: Config, policy: Policy): Tree => {
  const required = leavesOf(policy.require).flatMap(([path, wanted]) =>
    [path, ...ofRoles(config, path)].map(
      (place): Value => [place, strictest(path, at(config, place), wanted)],
    ),
  );
  // A run that may open the network would pass it.
  const isClosed = at(policy.require, ['sandbox', 'network']) !== undefined;
  const closed: readonly Value[] = isClosed ? [[['sandbox', 'allow_task_network'], false]] : [];
  const changed = changedIn(config, [...required, ...closed]);
  const section = isJsonObject(changed['policy']) ? changed['policy'] : {};
  return { ...changed, policy: { ...section, ...sectionOf(config.policy, policy) } };
};

/** Numbers above what `policy.at_most` allows, as they count. */
const bounded = (config: Config): Tree =>
  changedIn(
    config,
    Object.entries(config.policy.at_most).flatMap(([key, limit]) => {
      const path = partsOfKey(key);
      return [path, ...ofRoles(config, path)].map(
        (place): Value => [place, limitedAt(path, at(config, place), limit)],
      );
    }),
  );

/** @throws ConfigError for a file that is no policy */
const parsePolicy = (file: string, text: string): Policy => {
  const parsed = parseWithProblems(policySchema, parseJson(text));
  const problems = parsed.ok ? parseWithProblems(configSections, parsed.value.require) : parsed;
  if (!parsed.ok || !problems.ok) {
    const [first] = problems.ok ? [] : problems.problems;
    const place = [...(parsed.ok ? ['require'] : []), ...(first?.path ?? [])].join('.');
    throw new ConfigError(`${file}: ${place || 'policy'}: ${first?.problem ?? 'not JSON'}`);
  }
  const { require, at_most: atMost, only } = parsed.value;
  const keys = Object.keys(atMost).length === 0 ? [] : configKeys().map(([key]) => key);
  const unknown = Object.keys(atMost).find((key) => !keys.includes(key));
  if (unknown !== undefined) throw new ConfigError(`${file}: at_most: there is no key ${unknown}`);
  return { file, require, atMost, only };
};

/** Null: it counts. */
const distrusted = (file: string): string | null => {
  const { uid, mode, size } = statSync(file);
  if (uid !== 0) return `${file} does not count: its owner is not root; chown root ${file}`;
  if ((mode & 0o022) !== 0)
    return `${file} does not count: others than root may write it; chmod go-w ${file}`;
  return size > bytesAtMost ? `${file} does not count: it is larger than 1 MiB` : null;
};

export interface Policies {
  readonly policies: readonly Policy[];
  /** Why files do not count. */
  readonly policyWarnings: readonly string[];
}

/**
 * The policy of this machine, and the one that `AGENT_POLICY_FILE` names in addition.
 * @throws ConfigError for one that counts and cannot be read: nothing runs without its rules
 */
export const readPolicies = (env: NodeJS.ProcessEnv, shipped = shippedFile): Policies => {
  const named = env['AGENT_POLICY_FILE'];
  const files = [shipped, ...(named ? [named] : [])];
  const policies: Policy[] = [];
  const policyWarnings: string[] = [];
  for (const file of files) {
    try {
      const warning = distrusted(file);
      if (warning === null) policies.push(parsePolicy(file, readFileSync(file, 'utf8')));
      else policyWarnings.push(warning);
    } catch (error) {
      if (error instanceof ConfigError) throw error;
      const isMissing = isJsonObject(error) && error['code'] === 'ENOENT';
      if (!isMissing)
        throw new ConfigError(`${file}: the policy cannot be read: ${messageOf(error)}`);
      if (file === named) policyWarnings.push(`${file}, which AGENT_POLICY_FILE names, is missing`);
    }
  }
  return { policies, policyWarnings };
};

/** Layers over a configuration, one for each rule that changes it. */
export const policyLayers = (
  given: Tree,
  { policies }: Pick<Policies, 'policies'>,
  merged: (under: Tree, over: Tree) => Tree,
): readonly ConfigLayer[] => {
  if (policies.length === 0 && given['policy'] === undefined) return [];
  let tree = given;
  const layers: ConfigLayer[] = [];
  // What cannot be read is said by who reads the whole.
  const rule = (make: (config: Config) => Tree): Tree => {
    const { data } = configSections.safeParse(tree);
    return data === undefined ? {} : make(data);
  };
  const add = (source: string, over: Tree): void => {
    tree = merged(tree, over);
    if (Object.keys(over).length > 0) layers.push({ source, tree: over });
  };
  for (const policy of policies)
    add(
      policy.file,
      rule((config) => forcedBy(config, policy)),
    );
  add(policies.map(({ file }) => file).join(', ') || 'policy.at_most', rule(bounded));
  return layers;
};

/** With what is in lists. */
const textsOf = (value: unknown, path: Path): readonly (readonly [Path, string])[] => {
  if (typeof value === 'string') return [[path, value]];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => textsOf(inner, [...path, key]));
};

const isLoopback = (host: string): boolean =>
  host === 'localhost' || (isIP(host) !== 0 && addressKind(host) === 'loopback');

/** An address that `policy.only.hosts` leaves out; null: it is allowed. */
export const hostRefusal = (
  { only: { hosts } }: Config['policy'],
  address: string,
): string | null => {
  const host = normalHost(new URL(address).hostname);
  if (hosts === undefined || host === null || isLoopback(host)) return null;
  return createHostRules(hosts).names(host)
    ? null
    : `${host} is not among policy.only.hosts (${hosts.join(', ') || 'none'})`;
};

/** Addresses that the user has set and may not. */
export const refusedAddresses = (given: Tree, policy: Config['policy']): readonly string[] =>
  textsOf(given, []).flatMap(([path, value]) => {
    // Spaces around it and capitals in its scheme make no other address.
    const isAddress = /^\s*[a-z][a-z0-9+.-]*:\/\//i.test(value) && URL.canParse(value);
    const refusal = isAddress ? hostRefusal(policy, value) : null;
    return refusal === null ? [] : [`${path.join('.')}: ${refusal}`];
  });

/**
 * Why a model, or an assistant with one, may not work; null: it may. `provider`: of the model, or
 * the name of the assistant. `model`: null for the assistant's own choice.
 */
export const modelRefusal = (
  { only: { providers, models } }: Config['policy'],
  provider: string,
  model: string | null,
): string | null => {
  if (providers !== undefined && !isCovered(provider, providers))
    return `${provider} is not among policy.only.providers (${providers.join(', ') || 'none'})`;
  const name = `${provider}/${model ?? ''}`;
  return models === undefined || isCovered(name, models)
    ? null
    : `${model === null ? `${provider} without a model` : name} is not among policy.only.models (${models.join(', ') || 'none'})`;
};

const shown = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value) ?? 'nothing');

/** What the policies of this machine ask, and what of the configuration does not count for them. */
export const policyTexts = ({
  policies,
  layers,
}: Pick<Policies, 'policies'> & { readonly layers: readonly ConfigLayer[] }): readonly string[] => {
  const asked = policies.map(({ file, require, atMost, only }) => {
    const rules = [
      ...leavesOf(require).map(([path, value]) => `${path.join('.')} is ${shown(value)}`),
      ...Object.entries(atMost).map(([key, limit]) => `${key} is at most ${limit}`),
      ...Object.entries(only).map(([key, list]) => `only these ${key}: ${list?.join(', ')}`),
    ];
    return `${file}: ${rules.join('; ') || 'no rules'}`;
  });
  const isRule = ({ source }: ConfigLayer) => policies.some(({ file }) => source.includes(file));
  const given = layers.filter((layer) => !isRule(layer));
  const replaced = layers.filter(isRule).flatMap(({ tree }) =>
    leavesOf(tree).flatMap(([path, value]) => {
      const layer = given.findLast((each) => at(each.tree, path) !== undefined);
      const mine = layer === undefined ? value : at(layer.tree, path);
      return isDeepStrictEqual(mine, value)
        ? []
        : [
            `${path.join('.')} ${shown(mine)} of ${layer?.source} does not count: ${shown(value)} does`,
          ];
    }),
  );
  return [...asked, ...replaced];
};
