import type { ForgeOf } from '../../../actors/engine/importing/import-issues.ts';
import type { FindForge } from '../../../actors/engine/publishing/forge-place.ts';
import { PullRequestError } from '../../../actors/engine/publishing/until-news.ts';
import type { Forge } from '../../../actors/forge/port.ts';
import { hostOfForge, isAtForge } from '../../../actors/forge/remote.ts';
import type { Workspace } from '../../../actors/workspace/port.ts';
import { keptKey } from '../../server/secrets/kept-keys.ts';
import { forgeKeys } from '../providers.ts';
import type { Config } from '../schema/config-schema.ts';

type ForgeConfig = Config['forge'];
type Variables = Readonly<Record<string, string | undefined>>;

/** The variable that has the token; undefined: none has one. */
const variableWithToken = (
  { type, token_env: own }: ForgeConfig,
  variables: Variables,
): string | undefined =>
  (own === undefined ? forgeKeys[type].variables : [own]).find((name) => variables[name]);

export const forgeToken = (config: ForgeConfig, variables: Variables): string | null => {
  const found = variableWithToken(config, variables);
  return (found === undefined ? null : variables[found]) ?? keptKey(variables, config.type);
};

/** Where the token is from, for people; null: there is none. */
export const forgeTokenSource = (config: ForgeConfig, variables: Variables): string | null =>
  variableWithToken(config, variables) ??
  (keptKey(variables, config.type) === null ? null : `agent auth login ${config.type}`);

const forPerson = (message: string, fault = 'gone'): PullRequestError =>
  new PullRequestError({ needs: 'person', fault, message, retryAt: null });

/** `https://github.com/acme/shop.git`, `git@github.com:acme/shop.git`, `ssh://git@host/acme/shop` */
const partsOf = (address: string): { readonly host: string; readonly path: string } => {
  const [, short, below] = /^[\w.-]+@([\w.-]+):(?!\/\/)(.+)$/.exec(address) ?? [];
  const url = URL.canParse(address) ? new URL(address) : null;
  const path = (below ?? url?.pathname ?? '')
    .split('/')
    .filter(Boolean)
    .join('/')
    .replace(/\.git$/, '');
  return { host: short ?? url?.hostname ?? '', path };
};

const ownerAndName = /^[\w.-]+\/[\w.-]+$/;

/** @throws PullRequestError */
const repositoryOf = ({ repository, remote }: ForgeConfig, address: string): string => {
  if (repository !== undefined) return repository;
  const { path } = partsOf(address);
  if (ownerAndName.test(path)) return path;
  throw forPerson(
    `the address of the remote ${remote} names no owner/name: set forge.repository, or forge.remote`,
  );
};

const addressOf = async (
  { remote }: ForgeConfig,
  workspace: Pick<Workspace, 'addressOf'>,
): Promise<string | null> => (remote.includes(':') ? remote : workspace.addressOf(remote));

/**
 * `owner/name` of the repository that pull requests go to; null where nothing says that the project is
 * at the forge: `forge.repository` is not set, and the remote is somewhere else.
 */
export const forgeRepository = async (
  config: ForgeConfig,
  workspace: Pick<Workspace, 'addressOf'>,
): Promise<string | null> => {
  if (config.repository !== undefined) return config.repository;
  const { host, path } = partsOf((await addressOf(config, workspace)) ?? '');
  return host === hostOfForge(config.api_url) && ownerAndName.test(path) ? path : null;
};

export interface ForgePlacePorts {
  readonly config: () => ForgeConfig;
  readonly variables: Variables;
  readonly workspace: Pick<Workspace, 'addressOf'>;
  readonly now: () => number;
}

interface ForgePlaces {
  readonly place: FindForge;
  /** Without a place to push to. */
  readonly forgeOf: ForgeOf;
}

const load = async (type: ForgeConfig['type']) =>
  type === 'gitea'
    ? (await import('../../../actors/forge/gitea.ts')).createGitea
    : (await import('../../../actors/forge/github.ts')).createGitHub;

/** The forge, as the configuration and the remote of the project say; loaded when it is used. */
export const createForgePlaces = ({
  config,
  variables,
  workspace,
  now,
}: ForgePlacePorts): ForgePlaces => {
  /** By repository and API; each keeps what did not change since. */
  const known = new Map<string, Forge>();
  const token = () => forgeToken(config(), variables);
  const remoteAddress = async (): Promise<string> => {
    const { remote } = config();
    const address = await addressOf(config(), workspace);
    if (address !== null) return address;
    throw forPerson(
      `the project has no remote ${remote}: add it with git remote add, or set forge.remote`,
    );
  };
  const forgeAt = async (repository: string): Promise<Forge> => {
    const { type, api_url: apiUrl, token_env: own } = config();
    if (type === 'gitea' && hostOfForge(apiUrl) === 'github.com')
      throw forPerson('forge.type is gitea: set forge.api_url to https://<host>/api/v1');
    const key = forgeKeys[type];
    if (token() === null)
      throw forPerson(
        `there is no token for ${repository}: agent auth login ${key.name}, or set ${own ?? key.variables.join(' or ')} and start the server again`,
        'token',
      );
    const of = `${type} ${apiUrl} ${repository}`;
    const forge = known.get(of) ?? (await load(type))({ apiUrl, repository, token, now });
    known.set(of, forge);
    return forge;
  };
  return {
    place: async () => {
      const address = await remoteAddress();
      const repository = repositoryOf(config(), address);
      const forge = await forgeAt(repository);
      const isOurs = isAtForge(address, config().api_url);
      return { forge, repository, url: address, token: isOurs ? token() : null };
    },
    forgeOf: async (repository) =>
      forgeAt(repository ?? config().repository ?? repositoryOf(config(), await remoteAddress())),
  };
};
