import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  opendirSync,
  openSync,
  readFileSync,
  readlinkSync,
  readSync,
  realpathSync,
} from 'node:fs';
import { isAbsolute, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { RoleProfile } from '../../actors/agent/prompt.ts';
import { codeOf, hasCode } from '../../actors/files/error-code.ts';
import { type Checked, refuseForError, refusePath } from '../../actors/tools/confine.ts';
import { forEachRole, type Role, roles } from '../../machines/task.ts';
import { ConfigError } from '../config/config-error.ts';
import { parseRole } from './parse-role.ts';
import { type ProjectRole, projectRole, shippedRole } from './role-schema.ts';

const rolesFolder = '.agent/roles';
/** Small enough that no YAML takes long to parse. */
const roleFileMaxBytes = 16 * 1024;
const maxEntries = 100;

/** `path` is relative to the project's root. */
export interface ProjectRoleFile {
  readonly role: Role | null;
  readonly path: string;
  readonly content: Checked<ProjectRole>;
}

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

const isInside = (root: string, path: string): boolean => {
  const way = relative(root, path);
  return !isAbsolute(way) && way.split('/')[0] !== '..';
};

/** Resolves links. Null when nothing is there. */
const resolveInside = (root: string, path: string): Checked<string> | null => {
  try {
    const real = realpathSync(join(root, path));
    return isInside(root, real)
      ? { ok: true, value: real }
      : refusePath('it', 'leads out of the project');
  } catch (error) {
    const code = codeOf(error);
    const isLink =
      lstatSync(join(root, path), { throwIfNoEntry: false })?.isSymbolicLink() === true;
    return (code === 'ENOENT' && !isLink) || code === 'ENOTDIR'
      ? null
      : refuseForError('it', error);
  }
};

const readOpen = (root: string, fd: number): Checked<Buffer> => {
  // The file may have been swapped between the check and the open.
  if (process.platform === 'linux' && !isInside(root, readlinkSync(`/proc/self/fd/${fd}`)))
    return refusePath('it', 'leads out of the project');
  if (!fstatSync(fd).isFile()) return refusePath('it', 'is not a regular file');
  const bytes = Buffer.alloc(roleFileMaxBytes + 1);
  const length = readSync(fd, bytes, 0, bytes.length, 0);
  return length > roleFileMaxBytes
    ? refusePath('it', `has more than ${roleFileMaxBytes} bytes`)
    : { ok: true, value: bytes.subarray(0, length) };
};

const readBounded = (root: string, path: string): Checked<Buffer> | null => {
  try {
    const real = resolveInside(root, path);
    if (real?.ok !== true) return real;
    const fd = openSync(real.value, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    try {
      return readOpen(root, fd);
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    return refuseForError('it', error);
  }
};

const readRole = (root: string, role: Role): readonly ProjectRoleFile[] => {
  const path = `${rolesFolder}/${role}.yml`;
  const bytes = readBounded(root, path);
  if (bytes === null) return [];
  return [{ role, path, content: bytes.ok ? parseRole(bytes.value, role, projectRole) : bytes }];
};

/** YAML files whose name is no role. */
const strays = (real: string): readonly ProjectRoleFile[] => {
  const known = roles.map((role) => `${role}.yml`);
  const found: ProjectRoleFile[] = [];
  const entries = opendirSync(real);
  try {
    for (let count = 0; count < maxEntries; count += 1) {
      const entry = entries.readSync();
      if (entry === null) break;
      if (!/\.ya?ml$/.test(entry.name) || known.includes(entry.name)) continue;
      const content = refusePath('it', `is not the file of a role; those are ${known.join(', ')}`);
      found.push({ role: null, path: `${rolesFolder}/${entry.name}`, content });
    }
  } finally {
    entries.closeSync();
  }
  return found;
};

/**
 * Reads the project's role files. They are untrusted: size, kind and path are bounded; never
 * throws.
 */
export const readProjectRoles = (root: string): readonly ProjectRoleFile[] => {
  try {
    const real = resolveInside(root, rolesFolder);
    if (real === null) return [];
    if (!real.ok) return [{ role: null, path: rolesFolder, content: real }];
    return [...roles.flatMap((role) => readRole(root, role)), ...strays(real.value)];
  } catch (error) {
    return hasCode(error, 'ENOTDIR')
      ? []
      : [{ role: null, path: rolesFolder, content: refuseForError('it', error) }];
  }
};

export const shippedFile = (role: Role): string =>
  fileURLToPath(new URL(`../../../configs/roles/${role}.yml`, import.meta.url));

const profileFrom = (role: Role): RoleProfile => {
  const path = shippedFile(role);
  const parsed = parseRole(readFileSync(path), role, shippedRole);
  if (!parsed.ok) throw new ConfigError(`${path}: ${parsed.text}`);
  const { description, tools, limits, success_criteria, prompt } = parsed.value;
  return {
    role,
    description,
    tools,
    timeoutMs: limits.timeout_seconds * 1_000,
    prompt,
    criteria: success_criteria,
    projectNotes: null,
  };
};

let cachedRoles: Readonly<Record<Role, RoleProfile>> | null = null;

export const shippedRoles = (): Readonly<Record<Role, RoleProfile>> => {
  cachedRoles ??= forEachRole(profileFrom);
  return cachedRoles;
};
