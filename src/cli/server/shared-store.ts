import type { SharedPorts } from '../../actors/engine/attempts/system-ports.ts';
import type { PostgresDatabase } from '../../actors/store/postgres/database.ts';
import { createLoginRows, type LoginRows } from '../../actors/store/postgres/login-rows.ts';
import { createServerCalls } from '../../actors/store/postgres/server-calls.ts';
import type { Database } from '../../actors/store/rows/rows.ts';
import { loginTimes } from '../../http/page-sessions.ts';
import { type Project, serverNameOf } from '../config/places/project.ts';
import type { Config } from '../config/schema/config-schema.ts';
import { version } from '../version.ts';
import type { Logger } from './logs/logger.ts';

export const isShared = (db: Database): db is PostgresDatabase => 'tellServers' in db;

/** The time of day that all servers of the store have in common. */
export const clockOf = (db: Database): (() => number) => (isShared(db) ? db.clock : Date.now);

/** The logins of the page that all servers of the store have in common; null: no other one can. */
export const sharedLoginsOf = (db: Database): LoginRows | null =>
  isShared(db) ? createLoginRows(db, loginTimes) : null;

/** This server among those that use the same database; undefined when no other one can. */
export const sharedPortsOf = (
  project: Project,
  { server }: Config,
  db: Database,
  {
    runsAgents,
    redact,
    log,
  }: {
    readonly runsAgents: boolean;
    readonly redact: (text: string) => string;
    readonly log: Logger['log'];
  },
): SharedPorts | undefined => {
  if (!isShared(db)) return undefined;
  return {
    name: serverNameOf(project),
    facts: {
      version,
      startedAt: Date.now(),
      pool: server.worker_pool_size,
      roles: runsAgents ? (server.roles ?? null) : [],
    },
    onDatabaseLost: db.onLost,
    calls: (options) => createServerCalls(db, { ...options, redact }),
    notices: {
      tell: (notice) =>
        void db
          .tellServers(notice)
          .catch((error: unknown) =>
            log('could not send a notice to the other servers', { notice, error }),
          ),
      on: db.onNotice,
    },
  };
};
