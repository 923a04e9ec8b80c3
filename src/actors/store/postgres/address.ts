import { readFileSync, type Stats, statSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { join } from 'node:path';
import { StoreError } from '../port.ts';
import { type TlsSettings, tlsSettings } from './tls.ts';

export interface DatabaseHost {
  /** A name or an address; a path is the folder of a Unix socket. */
  readonly host: string;
  readonly port: number;
}

export interface PostgresAddress {
  /** They are tried in this order. */
  readonly hosts: readonly DatabaseHost[];
  readonly user: string;
  readonly database: string;
  /** The schema that holds all our tables. */
  readonly schema: string;
  readonly tls: TlsSettings;
  /** For each host. */
  readonly connectMs: number;
  /** True: a standby is passed over, also when it is the only host. */
  readonly needsPrimary: boolean;
  /** A function, so that nothing that prints the address prints it. Null: none was given. */
  readonly password: () => string | null;
  /** Advice for a server that asks for a password when there is none. */
  readonly passwordAdvice: string;
  /** For people and logs: no password is in it. */
  readonly shown: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

const urlParts =
  /^postgres(?:ql)?:\/\/(?:(?<user>[^:@/?]*)(?::(?<password>[^@/?]*))?@)?(?<hosts>[^/?]*)(?:\/(?<database>[^?]*))?(?:\?(?<query>.*))?$/i;
const defaultPort = 5_432;
const defaultConnectSeconds = 3;
const defaultSchema = 'agent_task_server';
const socketFolder = '/var/run/postgresql';

/** Others of libpq are refused: they would be ignored without a word. */
const parameters = [
  'host',
  'port',
  'user',
  'password',
  'dbname',
  'connect_timeout',
  'target_session_attrs',
  'sslmode',
  'sslrootcert',
  'sslcert',
  'sslkey',
  'schema',
  'application_name',
  'service',
] as const;
type Parameters = Partial<Record<(typeof parameters)[number], string>>;

/** The address itself may hold a password, so that no message repeats it. */
const invalidAddress = (problem: string): StoreError =>
  new StoreError(
    `the address of the store is invalid: ${problem}; write it as postgres://user@host:5432/database`,
  );

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalidAddress('a % is not followed by two hexadecimal digits');
  }
};

const knownOf = (given: Iterable<readonly [string, string]>, where: string): Parameters => {
  const pairs = [...given];
  const unknown = pairs.find(([key]) => !parameters.some((name) => name === key))?.[0];
  if (unknown !== undefined) throw invalidAddress(`${where} has the unknown parameter ${unknown}`);
  return Object.fromEntries(pairs);
};

/** The address comes before its service. */
const parametersOf = (
  { user, password, database, query }: Readonly<Record<string, string | undefined>>,
  env: Environment,
): Parameters => {
  const parts = { user, password, dbname: database };
  const written = Object.entries(parts).flatMap(([key, text]) =>
    text ? [[key, decoded(text)] as const] : [],
  );
  const asked = knownOf(new URLSearchParams(query), 'it');
  const service = asked.service ?? env['PGSERVICE'];
  const ofService = service ? serviceSettings(service, env, invalidAddress) : [];
  return {
    ...knownOf(ofService, `the service ${service}`),
    ...Object.fromEntries(written),
    ...asked,
  };
};

const parsePort = (text: string): number => {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw invalidAddress('a port is not a number from 1 to 65535');
  return port;
};

/** `h1:5432,h2`, as in an address; IPv6 in brackets. */
const splitHosts = (text: string): readonly (readonly [host: string, port: string])[] =>
  text.split(',').map((each) => {
    const [, bracketed, plain = '', port = ''] =
      /^(?:\[([^\]]*)\]|([^:]*))(?::(\d*))?$/.exec(each) ?? [];
    if (bracketed === undefined && plain === '' && each !== '' && port === '')
      throw invalidAddress('a host cannot be read');
    return [decoded(bracketed ?? plain), port];
  });

const hostsOf = (
  text: string,
  { host, port }: Parameters,
  env: Environment,
): readonly DatabaseHost[] => {
  const pairs = splitHosts(text === '' ? (host ?? env['PGHOST'] ?? '') : text);
  const ports = (port ?? env['PGPORT'] ?? '').split(',');
  return pairs.map(([name, own], at) => ({
    host: name === '' ? socketFolder : name,
    port: parsePort(own || ports[at] || ports[0] || String(defaultPort)),
  }));
};

const showHost = ({ host, port }: DatabaseHost): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;

const connectMsOf = (seconds: string): number => {
  const ms = Number(seconds) * 1_000;
  if (!Number.isFinite(ms) || ms < 0)
    throw invalidAddress('connect_timeout is not a number of seconds');
  return ms === 0 ? defaultConnectSeconds * 1_000 : ms;
};

const sessionAttributes = ['any', 'read-write', 'primary'];

/**
 * A project's schema, where the address names none: projects in one database do not mix, also when
 * their folders have the same name, or names of which nothing is left.
 */
export const schemaOfProject = (name: string, hash: string): string =>
  `agent_${name
    .toLowerCase()
    .replaceAll(/[^a-z0-9_]/g, '_')
    .slice(0, 30)}_${hash}`;

/**
 * Reads an address as libpq does, with what its service, the variables PGHOST, PGUSER, PGPASSWORD and
 * so on, and the password file, add to it. `schema` is ours. @throws StoreError
 */
export const parsePostgresAddress = (
  url: string,
  env: Environment,
  usualSchema = defaultSchema,
): PostgresAddress => {
  const found = urlParts.exec(url)?.groups;
  if (found === undefined) throw invalidAddress('it cannot be read');
  const given = parametersOf(found, env);
  const user = given.user || env['PGUSER'] || userInfo().username;
  const database = given.dbname || env['PGDATABASE'] || user;
  const hosts = hostsOf(found['hosts'] ?? '', given, env);
  const attributes = given.target_session_attrs ?? env['PGTARGETSESSIONATTRS'] ?? 'read-write';
  if (!sessionAttributes.includes(attributes))
    throw invalidAddress(`target_session_attrs is none of ${sessionAttributes.join(', ')}`);
  const schema = given.schema ?? usualSchema;
  if (!/^[a-z_][a-z0-9_]{0,50}$/.test(schema))
    throw invalidAddress('schema has other characters than a-z, 0-9 and _');
  const owner: PasswordOwner = { hosts, user, database };
  const password = given.password || passwordFor(owner, env);
  return {
    hosts,
    user,
    database,
    schema,
    tls: tlsSettings(given, env, invalidAddress),
    connectMs: connectMsOf(given.connect_timeout ?? env['PGCONNECT_TIMEOUT'] ?? ''),
    needsPrimary: attributes !== 'any',
    password: () => password,
    passwordAdvice: passwordAdvice(env),
    shown: `postgres://${user}@${hosts.map(showHost).join(',')}/${database}`,
  };
};

interface PasswordOwner {
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  readonly user: string;
  readonly database: string;
}

/** `host:port:database:user:password`; `\` takes the meaning of a colon away. */
const passwordFieldsOf = (line: string): readonly string[] =>
  line
    .replace(/\\(.)/gs, (_, escaped: string) => (escaped === ':' ? '\0' : escaped))
    .split(':')
    .map((field) => field.replaceAll('\0', ':'));

const passwordFile = (env: Environment): string => env['PGPASSFILE'] || join(homedir(), '.pgpass');

const statsOf = (file: string): Stats | null => {
  try {
    return statSync(file);
  } catch {
    return null;
  }
};

const isOpenToOthers = (file: string): boolean => ((statsOf(file)?.mode ?? 0) & 0o077) !== 0;

/** As libpq, a file that others can read is passed over. */
const readPasswordFile = (file: string): string => {
  try {
    return statsOf(file)?.isFile() === true && !isOpenToOthers(file)
      ? readFileSync(file, 'utf8')
      : '';
  } catch {
    return '';
  }
};

const nameInFile = (host: string): string => (host.startsWith('/') ? 'localhost' : host);

const inPasswordFile = (text: string, { hosts, user, database }: PasswordOwner): string | null => {
  const fits = (pattern: string | undefined, value: string): boolean =>
    pattern === '*' || pattern === value;
  for (const line of text.split('\n')) {
    if (line.startsWith('#')) continue;
    const [host, port, name, owner, password] = passwordFieldsOf(line);
    if (password === undefined || !fits(name, database) || !fits(owner, user)) continue;
    const isOurs = hosts.some(
      (each) =>
        (fits(host, each.host) || fits(host, nameInFile(each.host))) &&
        fits(port, String(each.port)),
    );
    if (isOurs) return password;
  }
  return null;
};

/** The password that is not in the address: of PGPASSWORD, or of PGPASSFILE or ~/.pgpass. */
const passwordFor = (owner: PasswordOwner, env: Environment): string | null =>
  env['PGPASSWORD'] || inPasswordFile(readPasswordFile(passwordFile(env)), owner);

/** Advice where none was found. */
const passwordAdvice = (env: Environment): string => {
  const file = passwordFile(env);
  return isOpenToOthers(file)
    ? `${file} is passed over, since others can read it: chmod 600 ${file}`
    : 'set PGPASSWORD, or write it into ~/.pgpass';
};

const textOf = (file: string): string => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
};

/** `key=value` of the section of this name; null: there is none. */
const sectionOf = (text: string, name: string): ReadonlyMap<string, string> | null => {
  let isInside = false;
  let found: Map<string, string> | null = null;
  for (const line of text.split('\n').map((each) => each.trim())) {
    if (line.startsWith('[')) {
      // As libpq, the first one counts.
      if (found !== null) return found;
      isInside = line === `[${name}]`;
      if (isInside) found = new Map();
    } else if (isInside && line !== '' && !line.startsWith('#')) {
      const [key = '', ...value] = line.split('=');
      found?.set(key.trim(), value.join('=').trim());
    }
  }
  return found;
};

/**
 * Settings in a service file of libpq: the user's, else that of the machine. @throws what `invalid`
 * makes of a problem
 */
const serviceSettings = (
  name: string,
  env: Environment,
  invalid: (problem: string) => Error,
): ReadonlyMap<string, string> => {
  const files = [
    env['PGSERVICEFILE'] || join(homedir(), '.pg_service.conf'),
    ...(env['PGSYSCONFDIR'] ? [env['PGSYSCONFDIR']] : ['/etc/postgresql-common', '/etc']).map(
      (folder) => join(folder, 'pg_service.conf'),
    ),
  ];
  for (const file of files) {
    const found = sectionOf(textOf(file), name);
    if (found !== null) return found;
  }
  throw invalid(`the service ${name} is in none of ${files.join(', ')}`);
};
