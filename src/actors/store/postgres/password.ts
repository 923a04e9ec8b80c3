import { readFileSync, type Stats, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

export interface PasswordOwner {
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  readonly user: string;
  readonly database: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

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
export const passwordFor = (owner: PasswordOwner, env: Environment): string | null =>
  env['PGPASSWORD'] || inPasswordFile(readPasswordFile(passwordFile(env)), owner);

/** Advice where none was found. */
export const passwordAdvice = (env: Environment): string => {
  const file = passwordFile(env);
  return isOpenToOthers(file)
    ? `${file} is passed over, since others can read it: chmod 600 ${file}`
    : 'set PGPASSWORD, or write it into ~/.pgpass';
};
