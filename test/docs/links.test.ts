import { existsSync, statSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { expect, test } from 'vitest';
import { pages, root, textOf } from './pages.ts';

const withoutCode = (text: string): string =>
  text.replace(/^```[\s\S]*?^```/gm, '').replace(/`[^`\n]*`/g, '``');

/** The anchors of a page, as GitHub makes them of its headings. */
const anchorsOf = (page: string): readonly string[] =>
  [
    ...textOf(page)
      .replace(/^```[\s\S]*?^```/gm, '')
      .matchAll(/^#+ (.+)$/gm),
  ].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );

const problemOf = (page: string, link: string): string | null => {
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? page : normalize(join(dirname(page), path));
  if (relative(root, join(root, target)).startsWith('..'))
    return `${page}: ${link} leaves the repository`;
  if (!existsSync(join(root, target))) return `${page}: ${link} does not exist`;
  if (anchor === undefined || statSync(join(root, target)).isDirectory()) return null;
  return anchorsOf(target).includes(anchor)
    ? null
    : `${page}: ${link} names no heading of ${target}`;
};

test('every relative link of the docs leads to an existing file and heading', () => {
  const links = pages.flatMap((page) =>
    [...withoutCode(textOf(page)).matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, link = '']) => link)
      .filter((link) => !/^[a-z]+:/.test(link))
      .map((link) => ({ page, link })),
  );

  expect(links.length).toBeGreaterThan(30);
  expect(links.flatMap(({ page, link }) => problemOf(page, link) ?? [])).toEqual([]);
});

test('every page of the docs is reached from the index', () => {
  const reached = new Set<string>();
  const visit = (page: string): void => {
    if (reached.has(page) || !page.endsWith('.md')) return;
    reached.add(page);
    for (const [, link = ''] of withoutCode(textOf(page)).matchAll(/\]\(([^)\s#]+)[^)]*\)/g))
      if (!/^[a-z]+:/.test(link) && existsSync(join(root, dirname(page), link)))
        visit(normalize(join(dirname(page), link)));
  };

  visit(join('docs', 'index.md'));

  const lost = pages.filter(
    (page) => page.startsWith('docs') && !page.includes('adr') && !reached.has(page),
  );
  expect(lost).toEqual([]);
});
