import { randomBytes } from 'node:crypto';
import {
  existsSync,
  linkSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { hasCode } from '../../actors/files/error-code.ts';
import { parseJson, textIn } from '../../machines/json.ts';
import type { Project } from '../config/places/project.ts';
import { ensurePrivateFolder } from '../server/secrets/private-files.ts';
import { hubFiles, hubFolderFor } from './hub-place.ts';

/** A project of this person: one file in the folder of the hub, named by the slug. */
export interface KnownProject {
  /** Its name in addresses. */
  readonly slug: string;
  readonly root: string;
  readonly stateDir: string;
  /** The file that `--config` or `AGENT_SERVER_CONFIG` named at the last start of its server. */
  readonly config: string | null;
}

const slugLengthAtMost = 60;
const suffix = '.json';

/** The folder's name in lower case; what an address cannot hold becomes a hyphen. */
const slugOf = (root: string): string => {
  const name = basename(root)
    .toLowerCase()
    .replace(/[^\p{L}\p{N}._-]/gu, '-')
    .replace(/^[.-]{1,60}/, '');
  return name.slice(0, slugLengthAtMost) || 'project';
};

const isSlug = (text: string): boolean => /^[\p{L}\p{N}_][\p{L}\p{N}._-]{0,69}$/u.test(text);

const projectIn = (folder: string, slug: string): KnownProject | null => {
  try {
    const kept = parseJson(readFileSync(join(folder, `${slug}${suffix}`), 'utf8'));
    const [root, stateDir] = ['root', 'state_dir'].map((key) => textIn(kept, key));
    if (root == null || stateDir == null) return null;
    return { slug, root, stateDir, config: textIn(kept, 'config') };
  } catch {
    return null;
  }
};

/** Sorted by name. */
export const knownProjects = (hubFolder: string): readonly KnownProject[] => {
  const folder = hubFiles(hubFolder).projects;
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return names
    .filter((name) => name.endsWith(suffix))
    .map((name) => name.slice(0, -suffix.length))
    .filter(isSlug)
    .sort()
    .flatMap((slug) => projectIn(folder, slug) ?? []);
};

export const knownProject = (hubFolder: string, slug: string): KnownProject | null =>
  isSlug(slug) ? projectIn(hubFiles(hubFolder).projects, slug) : null;

/** Only from the list: nothing of the project is removed. */
export const forgetProject = (hubFolder: string, { slug }: Pick<KnownProject, 'slug'>): void =>
  rmSync(join(hubFiles(hubFolder).projects, `${slug}${suffix}`), { force: true });

/** Moves a whole file to the first free name, so that no reader sees half of it. */
const takeSlug = (folder: string, temporary: string, root: string): string => {
  const base = slugOf(root);
  for (let count = 1; ; count += 1) {
    const slug = count === 1 ? base : `${base}-${count}`;
    try {
      linkSync(temporary, join(folder, `${slug}${suffix}`));
      return slug;
    } catch (error) {
      if (!hasCode(error, 'EEXIST')) throw error;
      // Another process registers the same project.
      if (projectIn(folder, slug)?.root === root) return slug;
    }
  }
};

/**
 * Lets the hub know the project. Its name stays the same from then on. @throws PrivateFileError,
 * StateFolderError, system errors
 */
export const registerProject = (
  project: Project,
  config: string | null | undefined,
): KnownProject => {
  const hubFolder = hubFolderFor(project);
  const folder = hubFiles(hubFolder).projects;
  ensurePrivateFolder(hubFolder);
  ensurePrivateFolder(folder);
  const { root, stateDir } = project;
  const before = knownProjects(hubFolder).find((known) => known.root === root);
  const named = config === undefined ? (before?.config ?? null) : config;
  if (before !== undefined && before.stateDir === stateDir && before.config === named)
    return before;
  const temporary = join(folder, `.~${randomBytes(6).toString('hex')}`);
  const kept = { root, state_dir: stateDir, ...(named === null ? {} : { config: named }) };
  writeFileSync(temporary, `${JSON.stringify(kept)}\n`, { flag: 'wx', mode: 0o600 });
  try {
    const slug = before?.slug ?? takeSlug(folder, temporary, root);
    if (before !== undefined) renameSync(temporary, join(folder, `${slug}${suffix}`));
    return { slug, root, stateDir, config: named };
  } finally {
    rmSync(temporary, { force: true });
  }
};
