import { readFileSync, statSync } from 'node:fs';
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
  (line.match(/(?:\\.|[^:\\])*(?::|$)/g) ?? []).map((field) =>
    field.replace(/:$/, '').replace(/\\(.)/g, '$1'),
  );

/** As libpq, a file that others can read is passed over. */
const readPasswordFile = (file: string): string => {
  try {
    const stats = statSync(file);
    return stats.isFile() && (stats.mode & 0o077) === 0 ? readFileSync(file, 'utf8') : '';
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
  env['PGPASSWORD'] ||
  inPasswordFile(readPasswordFile(env['PGPASSFILE'] || join(homedir(), '.pgpass')), owner);
