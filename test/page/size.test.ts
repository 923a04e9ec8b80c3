import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';

const page = join(import.meta.dirname, '..', '..', 'dist', 'page');

test('what a visitor loads first is at most 60 KB, compressed, and all views at most 68 KB', () => {
  const html = readFileSync(join(page, 'index.html'), 'utf8');
  const sizes = readdirSync(join(page, 'assets')).map((name) => ({
    size: gzipSync(readFileSync(join(page, 'assets', name))).length,
    isFirst: html.includes(name),
  }));
  const sum = (some: typeof sizes): number => some.reduce((all, { size }) => all + size, 0);

  expect(sum(sizes.filter(({ isFirst }) => isFirst))).toBeLessThanOrEqual(60 * 1024);
  expect(sum(sizes)).toBeLessThanOrEqual(68 * 1024);
});

test('script and styles of an exported task are at most 60 KB, compressed', () => {
  const folder = join(page, '..', 'recording');
  const sizes = readdirSync(folder).map(
    (name) => gzipSync(readFileSync(join(folder, name))).length,
  );

  expect(sizes).toHaveLength(2);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(60 * 1024);
});

test('the page has nothing inline and nothing foreign, and every file is named by its hash', () => {
  const html = readFileSync(join(page, 'index.html'), 'utf8');

  expect(html).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\bon\w+=|\bstyle=|https?:/);
  for (const name of readdirSync(join(page, 'assets')))
    expect(name).toMatch(/-[\w-]{8}\.(js|css|svg)$/);
});
