import type { RoleSettings, Settings } from '../../actors/engine/attempts/settings.ts';
import type { Checked } from '../../actors/tools/confine.ts';
import { plural } from '../../machines/plural.ts';
import type { Role } from '../../machines/task.ts';
import { ConfigError } from '../config/config-error.ts';
import { oneLine } from '../output/safe-text.ts';
import type { ProjectRoleFile } from './read-project-roles.ts';
import type { ProjectRole } from './role-schema.ts';

interface NarrowedRole {
  readonly role: RoleSettings;
  readonly changes: readonly string[];
}

interface RoleBound {
  readonly key: keyof ProjectRole['limits'];
  readonly allowed: number | null;
}

const roleBounds = (own: RoleSettings, settings: Settings): readonly RoleBound[] => [
  { key: 'timeout_seconds', allowed: own.timeoutMs / 1_000 },
  { key: 'max_turns', allowed: own.maxTurns ?? settings.maxTurns },
  { key: 'max_tokens_total', allowed: own.maxTokensTotal ?? settings.maxTokensTotal },
  { key: 'max_cost_usd', allowed: own.maxCostUsd ?? settings.maxCostUsd },
];

const allows = 'your configuration allows';

/** Tools, and MCP servers with all their tools. */
const allowedOf = ({ tools, mcp }: RoleSettings): readonly string[] => [
  ...tools,
  ...mcp.map((name) => `mcp__${name}`),
];

/** Everything that exceeds the user's configuration, or null. */
const excess = (
  own: RoleSettings,
  given: ProjectRole,
  bounds: readonly RoleBound[],
  sandboxed: boolean,
): string | null => {
  const added = (given.tools ?? []).filter((tool) => !allowedOf(own).includes(tool));
  const raised = bounds.flatMap(({ key, allowed }) => {
    const wanted = given.limits[key];
    return wanted === undefined || allowed === null || wanted <= allowed
      ? []
      : [`limits.${key}: ${wanted} is above the ${allowed} that ${allows}`];
  });
  const problems = [
    ...(added.length === 0
      ? []
      : [`tools: adds ${added.join(', ')} to what ${allows} (${allowedOf(own).join(', ')})`]),
    ...raised,
    ...(given.verify.length === 0 || sandboxed
      ? []
      : ['verify: adds commands, and sandbox.mode is off']),
  ];
  return problems.length === 0 ? null : problems.join('; ');
};

const narrowingsOf = (
  own: RoleSettings,
  given: ProjectRole,
  bounds: readonly RoleBound[],
  settings: Settings,
): readonly string[] => {
  const {
    tools = allowedOf(own),
    limits,
    require_approval,
    verify,
    success_criteria,
    notes,
  } = given;
  const removed = allowedOf(own).filter((tool) => !tools.some((kept) => kept === tool));
  const lowered = bounds.flatMap(({ key, allowed }) =>
    limits[key] === undefined || limits[key] === allowed
      ? []
      : [`${key} ${limits[key]} (was ${allowed ?? 'open'})`],
  );
  const approvals = require_approval.filter((tool) => !own.approvals.includes(tool));
  return [
    ...(removed.length === 0 ? [] : [`without ${removed.join(', ')}`]),
    ...lowered,
    ...(approvals.length === 0 ? [] : [`approval for ${approvals.join(', ')}`]),
    ...verify.map((command) => `verify ${JSON.stringify(command)}`),
    ...(given.network === false && (own.network ?? settings.network) !== false
      ? ['no network']
      : []),
    ...(success_criteria.length === 0
      ? []
      : [plural(success_criteria.length, 'more success criterion', 'more success criteria')]),
    ...(notes === undefined ? [] : ['notes']),
  ];
};

const wordsOf = ({ notes, success_criteria }: ProjectRole): string | null => {
  const wishes = success_criteria.map((each) => `- ${each}`);
  const lines = [
    ...(notes === undefined ? [] : [notes.trimEnd()]),
    ...(wishes.length === 0
      ? []
      : [['Before finish, this must be true as well:', '', ...wishes].join('\n')]),
  ];
  return lines.length === 0 ? null : lines.join('\n\n');
};

/**
 * Applies a project's role file: it may restrict what the user allows, never extend it. A file that
 * wants more is refused as a whole, with the key and the allowed value.
 */
const narrow = (
  settings: Settings,
  own: RoleSettings,
  given: ProjectRole,
  sandboxed: boolean,
): Checked<NarrowedRole> => {
  const bounds = roleBounds(own, settings);
  const problem = excess(own, given, bounds, sandboxed);
  if (problem !== null) return { ok: false, text: problem };
  const { tools, limits, require_approval, verify } = given;
  const role: RoleSettings = {
    ...own,
    tools: own.tools.filter((tool) => tools === undefined || tools.some((kept) => kept === tool)),
    timeoutMs:
      limits.timeout_seconds === undefined ? own.timeoutMs : limits.timeout_seconds * 1_000,
    maxTurns: limits.max_turns ?? own.maxTurns,
    maxTokensTotal: limits.max_tokens_total ?? own.maxTokensTotal,
    maxCostUsd: limits.max_cost_usd ?? own.maxCostUsd,
    approvals: [...new Set([...own.approvals, ...require_approval])],
    verify: [...own.verify, ...verify],
    isNetworkRevoked: own.isNetworkRevoked === true || given.network === false,
    mcp: own.mcp.filter((name) => tools?.includes(`mcp__${name}`) ?? true),
    projectNotes: wordsOf(given),
  };
  return { ok: true, value: { role, changes: narrowingsOf(own, given, bounds, settings) } };
};

export interface ProjectRoleOutcome {
  readonly role: Role | null;
  readonly path: string;
  readonly narrowed: readonly string[];
  /** The reason when the file is ignored. */
  readonly ignored: string | null;
}

interface Rules {
  /** True when commands are confined: only then may the project add checks. */
  readonly sandboxed: boolean;
  /** @throws ConfigError when the settings contradict each other */
  readonly check: (settings: Settings) => void;
}

interface Applied {
  readonly settings: Settings;
  readonly outcome: ProjectRoleOutcome;
}

const applyFile = (
  settings: Settings,
  { role, path, content }: ProjectRoleFile,
  rules: Rules,
): Applied => {
  const ignoring = (ignored: string): Applied => ({
    settings,
    outcome: { role, path, narrowed: [], ignored },
  });
  if (!content.ok) return ignoring(content.text);
  if (role === null) return ignoring('it belongs to no role');
  const narrowed = narrow(settings, settings.roles[role], content.value, rules.sandboxed);
  if (!narrowed.ok) return ignoring(narrowed.text);
  const next = { ...settings, roles: { ...settings.roles, [role]: narrowed.value.role } };
  try {
    rules.check(next);
  } catch (error) {
    if (error instanceof ConfigError) return ignoring(error.message);
    throw error;
  }
  return {
    settings: next,
    outcome: { role, path, narrowed: narrowed.value.changes, ignored: null },
  };
};

/** A repository cannot stop the server: a bad file is ignored. */
export const applyProjectRoles = (
  own: Settings,
  files: readonly ProjectRoleFile[],
  rules: Rules,
) => {
  let settings = own;
  const outcomes: ProjectRoleOutcome[] = [];
  for (const file of files) {
    const applied = applyFile(settings, file, rules);
    settings = applied.settings;
    outcomes.push(applied.outcome);
  }
  return { settings, outcomes };
};

export const narrowedText = (changes: readonly string[]): string => changes.join('; ') || 'nothing';

const maxNote = 600;

/** For the banner, the log and doctor; one line, safe to show. */
export const projectRoleNote = ({ role, path, narrowed, ignored }: ProjectRoleOutcome): string =>
  oneLine(
    ignored === null
      ? `${path} narrows the ${role}: ${narrowedText(narrowed)}`
      : `${path} is ignored: ${ignored}`,
    maxNote,
  );
