import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { RoleProfile } from '../../actors/agent/prompt.ts';
import { forEachRole, type Role } from '../../machines/task.ts';
import { ConfigError } from '../config/config-error.ts';
import { parseRole } from './parse-role.ts';
import { shippedRole } from './role-schema.ts';

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
