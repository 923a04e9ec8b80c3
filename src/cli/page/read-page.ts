import { readdirSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import type { PageFiles } from '../../http/page-files.ts';

const folderOf = (name: string): URL => new URL(`../../../dist/${name}/`, import.meta.url);

const contentTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

const assetsOf = (folder: URL): readonly string[] => {
  try {
    return [
      ...readdirSync(folder).filter((name) => name.includes('.')),
      ...readdirSync(new URL('assets/', folder)).map((name) => `assets/${name}`),
    ];
  } catch {
    return [];
  }
};

const readFiles = (folder: URL): PageFiles =>
  new Map(
    assetsOf(folder).map((name) => [
      name,
      {
        type: contentTypes[extname(name)] ?? 'application/octet-stream',
        body: readFileSync(new URL(name, folder)),
      },
    ]),
  );

/** The built page of a project; empty when it is not built. */
export const readPage = (): PageFiles => readFiles(folderOf('page'));

/** The front page of the hub. */
export const readFront = (): PageFiles => readFiles(folderOf('hub'));
