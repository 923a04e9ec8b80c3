import type { FindForge } from '../../../actors/engine/publishing/forge-place.ts';
import { PullRequestError } from '../../../actors/engine/publishing/until-news.ts';
import type { Forge } from '../../../actors/forge/port.ts';
import { hostOfForge, isAtForge } from '../../../actors/forge/remote.ts';
import type { Workspace } from '../../../actors/workspace/port.ts';
import { keptKey } from '../../server/secrets/kept-keys.ts';
import { forgeKey } from '../providers.ts';
import type { Config } from '../schema/config-schema.ts';

type ForgeConfig = Config['forge'];
type Variables = Readonly<Record<string, string | undefined>>;

export const forgeToken = ({ token_env: own }: ForgeConfig, variables: Variables): string | null =>
  (own === undefined ? forgeKey.variables : [own]).map((name) => variables[name]).find(Boolean) ??
  keptKey(variables, forgeKey.name);

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

/** GitHub, as the configuration and the remote of the project say; loaded when it is used. */
export const createForgePlace = ({
  config,
  variables,
  workspace,
  now,
}: ForgePlacePorts): FindForge => {
  let known: { readonly of: string; readonly forge: Forge } | null = null;
  return async () => {
    const wanted = config();
    const address = await addressOf(wanted, workspace);
    if (address === null)
      throw forPerson(
        `the project has no remote ${wanted.remote}: add it with git remote add, or set forge.remote`,
      );
    const repository = repositoryOf(wanted, address);
    const token = () => forgeToken(config(), variables);
    if (token() === null)
      throw forPerson(
        `there is no token for ${repository}: agent auth login ${forgeKey.name}, or set ${wanted.token_env ?? forgeKey.variables.join(' or ')} and start the server again`,
        'token',
      );
    const of = `${wanted.api_url} ${repository}`;
    if (known?.of !== of) {
      const { createGitHub } = await import('../../../actors/forge/github.ts');
      const options = { apiUrl: wanted.api_url, repository, token, now };
      known = { of, forge: createGitHub(options) };
    }
    const isOurs = isAtForge(address, wanted.api_url);
    return { forge: known.forge, repository, url: address, token: isOurs ? token() : null };
  };
};
