import { lstatSync, readdirSync, readlinkSync, type Stats } from 'node:fs';
import { dirname, isAbsolute, join, relative } from 'node:path';
import { type Protection, protectionOf } from './protected-paths.ts';

/**
 * A path, relative to its folder, that programs obey because a link with a protected name leads
 * there.
 */
export interface LinkPlace {
  readonly path: string;
  readonly protection: Protection;
}

const mostSteps = 1_000;

const statOf = (path: string): Stats | null => {
  try {
    return lstatSync(path);
  } catch {
    return null;
  }
};

/** Relative to the folder, `''` for itself; null when it lies elsewhere. */
export const relativeInside = (top: string, path: string): string | null => {
  const inside = relative(top, path);
  return inside === '..' || inside.startsWith('../') ? null : inside;
};

/**
 * The paths inside the folder that a link leads to, in order: each further link, then the target,
 * existing or not. Without the folder itself.
 */
export const linkPlaces = (top: string, link: string): readonly string[] => {
  const found: string[] = [];
  const note = (path: string): void => {
    const inside = relativeInside(top, path);
    if (inside !== null && inside !== '' && inside !== link) found.push(inside);
  };
  let at = top;
  let left: readonly string[] = link.split('/');
  for (let steps = 0; left.length > 0 && steps < mostSteps; steps += 1) {
    const [name = '', ...rest] = left;
    const next = join(at, name);
    left = rest;
    if (name === '..' || statOf(next)?.isSymbolicLink() !== true) {
      at = name === '..' ? dirname(at) : next;
      continue;
    }
    note(next);
    const target = readlinkSync(next);
    if (isAbsolute(target)) at = '/';
    left = [...target.split('/'), ...rest];
  }
  if (left.length === 0) note(at);
  return found;
};

export const placesOfLinks = (top: string, links: Iterable<string>): readonly LinkPlace[] =>
  [...links].flatMap((link) => {
    const known = protectionOf(link);
    if (known === null) return [];
    return linkPlaces(top, link).map((path) => ({ path, protection: known.protection }));
  });

export const linksIn = (folder: string): readonly string[] =>
  statOf(folder)?.isDirectory() === true
    ? readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
        entry.isSymbolicLink() ? [entry.name] : [],
      )
    : [];

export const isAtPlace = (places: readonly string[], path: string): boolean =>
  places.some(
    (place) => place === path || path.startsWith(`${place}/`) || place.startsWith(`${path}/`),
  );
