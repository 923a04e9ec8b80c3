import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

type Environment = Readonly<Record<string, string | undefined>>;

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
export const serviceSettings = (
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
