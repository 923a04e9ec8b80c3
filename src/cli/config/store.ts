import { basename, isAbsolute } from 'node:path';
import {
  type PostgresAddress,
  parsePostgresAddress,
  schemaOfProject,
} from '../../actors/store/postgres/address.ts';
import { ConfigError } from './config-error.ts';
import { hashOfRoot, type Project, taskFiles } from './places/project.ts';
import type { Config } from './schema/config-schema.ts';
import { isPostgresUrl } from './schema/config-values.ts';

/** The place of everything that is not in the project. */
export type StoreChoice =
  | { readonly kind: 'sqlite'; readonly file: string }
  | {
      readonly kind: 'postgres';
      readonly address: PostgresAddress;
      /** The server that keeps `.beads/issues.jsonl`; null: the first one. */
      readonly exportNode: string | null;
    };

/** The value of `store.url`, or what the variable holds that it names. @throws ConfigError */
const givenStoreUrl = (given: string, env: NodeJS.ProcessEnv): string => {
  if (isPostgresUrl(given) || isAbsolute(given)) return given;
  const held = env[given];
  if (!held) throw new ConfigError(`store.url names the variable ${given}, which is not set`);
  if (!isPostgresUrl(held) && !isAbsolute(held))
    throw new ConfigError(
      `the variable ${given} (store.url) holds neither postgres://user@host/database nor an absolute path`,
    );
  return held;
};

/** @throws ConfigError, StoreError */
export const storeFor = (
  { store, tracker }: Pick<Config, 'store' | 'tracker'>,
  project: Project,
  env: NodeJS.ProcessEnv,
): StoreChoice => {
  if (store.url === undefined) return { kind: 'sqlite', file: taskFiles(project).journal };
  const url = givenStoreUrl(store.url, env);
  return isPostgresUrl(url)
    ? {
        kind: 'postgres',
        exportNode: tracker.export_node ?? null,
        address: parsePostgresAddress(
          url,
          env,
          schemaOfProject(basename(project.root), hashOfRoot(project.root)),
        ),
      }
    : { kind: 'sqlite', file: url };
};

/** Secrets that no text may hold. */
export const storeSecrets = (choice: StoreChoice): readonly string[] => {
  const password = choice.kind === 'postgres' ? choice.address.password() : null;
  return password === null ? [] : [password];
};
