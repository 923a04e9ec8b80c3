import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));

export const textOf = (page: string): string => readFileSync(join(root, page), 'utf8');

/** Every page of the project, relative to its root. */
export const pages: readonly string[] = [
  ...['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md'].filter((name) =>
    existsSync(join(root, name)),
  ),
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];

/** The pages for users that people wrote. */
export const guides: readonly string[] = pages.filter(
  (page) =>
    /^(README|CONTRIBUTING|docs\/(index|guides\/))/.test(page) &&
    !/^Generated (from|by) /m.test(textOf(page)),
);

/** The code blocks of a page in one language. */
export const codeOf = (page: string, language: string): readonly string[] =>
  [...textOf(page).matchAll(/^```(\w*)\n([\s\S]*?)\n```$/gm)].flatMap(([, found, code = '']) =>
    found === language ? [code] : [],
  );
