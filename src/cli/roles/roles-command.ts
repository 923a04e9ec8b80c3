import {
  networkAccess,
  type RoleSettings,
  type Settings,
} from '../../actors/engine/attempts/settings.ts';
import { isAssistantName } from '../../machines/agent/agent-context.ts';
import { plural } from '../../machines/plural.ts';
import { roles } from '../../machines/task.ts';
import type { CommandContext } from '../client/command-context.ts';
import { loadConfig } from '../config/config.ts';
import { resolveSettings } from '../config/settings.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { stripControls } from '../output/safe-text.ts';
import { accessText } from '../server/notes.ts';
import { narrowedText, type ProjectRoleOutcome, projectRoleNote } from './apply-project-roles.ts';
import { ownRole } from './own-role.ts';
import { shippedFile } from './read-project-roles.ts';

interface Source {
  readonly kind: 'shipped' | 'user' | 'config';
  readonly path: string;
}

const modelOf = ({ defaultModel, backend }: Settings, own: RoleSettings): string | null => {
  const chosen = own.backend ?? backend;
  if (chosen === 'scripted') return 'scripted';
  return own.model ?? (isAssistantName(chosen) ? null : defaultModel);
};

const describeRole = (
  settings: Settings,
  own: RoleSettings,
  sources: readonly Source[],
  project: ProjectRoleOutcome | undefined,
) => ({
  role: own.role,
  description: own.description,
  tools: own.tools,
  backend: own.backend ?? settings.backend,
  model: modelOf(settings, own),
  limits: {
    timeout_seconds: own.timeoutMs / 1_000,
    max_turns: own.maxTurns ?? settings.maxTurns,
    max_tokens_total: own.maxTokensTotal ?? settings.maxTokensTotal,
    max_cost_usd: own.maxCostUsd ?? settings.maxCostUsd,
  },
  concurrency: own.concurrency,
  require_approval: own.approvals,
  verify: own.verify,
  network: networkAccess(settings, { role: own.role, options: {} }, { kind: 'commands' }),
  success_criteria: own.criteria,
  project_notes: own.projectNotes,
  sources,
  project:
    project === undefined
      ? null
      : { path: project.path, narrowed: project.narrowed, ignored: project.ignored },
});
type Described = ReturnType<typeof describeRole>;

const roleIndent = 14;
const row = (name: string, text: string): string =>
  `  ${name.padEnd(roleIndent - 2)}${stripControls(text).replaceAll('\n', `\n${' '.repeat(roleIndent)}`)}`;

const limitsText = ({ limits, concurrency }: Described): string => {
  const { timeout_seconds, max_turns, max_tokens_total, max_cost_usd } = limits;
  return [
    `${timeout_seconds} s`,
    plural(max_turns, 'turn'),
    ...(max_tokens_total === null ? [] : [`${max_tokens_total} tokens`]),
    ...(max_cost_usd === null ? [] : [`${max_cost_usd} USD`]),
    ...(concurrency === null ? [] : [`${concurrency} at once`]),
  ].join(', ');
};

const projectRoleText = ({ path, narrowed, ignored }: NonNullable<Described['project']>): string =>
  ignored === null
    ? `${path} narrows: ${narrowedText(narrowed)}`
    : `${path} is ignored: ${ignored}`;

const renderRole = (each: Described): string =>
  [
    `${each.role}: ${stripControls(each.description)}`,
    row('tools', each.tools.join(', ')),
    row('model', each.model ?? `${each.backend}'s own choice`),
    ...(each.backend === 'auto' ? [] : [row('backend', each.backend)]),
    row('limits', limitsText(each)),
    ...(each.require_approval.length === 0
      ? []
      : [row('approval', each.require_approval.join(', '))]),
    ...(each.verify.length === 0 ? [] : [row('verify', each.verify.join('\n'))]),
    ...(each.network === false ? [] : [row('network', accessText(each.network))]),
    ...(each.success_criteria.length === 0
      ? []
      : [row('done when', each.success_criteria.join('\n'))]),
    row('from', each.sources.map(({ kind, path }) => `${path} (${kind})`).join('\n')),
    ...(each.project === null ? [] : [row('project', projectRoleText(each.project))]),
    ...(each.project_notes === null ? [] : [row('it notes', each.project_notes)]),
  ].join('\n');

/**
 * Lists the roles in this project and the source of each value; needs no server. @throws
 * ConfigError
 */
export const listRoles = async (
  { project, io, env, json }: CommandContext,
  configFile: string | undefined,
): Promise<number> => {
  const loaded = loadConfig({ config: configFile, project }, env);
  const { settings, projectRoles } = resolveSettings(loaded, project.root);
  const described = roles.map((role) => {
    const { file } = ownRole(loaded, role);
    const sources: readonly Source[] = [
      { kind: 'shipped', path: shippedFile(role) },
      ...(file === null ? [] : [{ kind: 'user' as const, path: file }]),
      ...(loaded.config.roles[role] === undefined || loaded.file === null
        ? []
        : [{ kind: 'config' as const, path: loaded.file }]),
    ];
    const outcome = projectRoles.find((each) => each.role === role);
    return describeRole(settings, settings.roles[role], sources, outcome);
  });
  const strays = projectRoles.filter(({ role }) => role === null);
  if (json)
    io.json({ roles: described, ignored: strays.map(({ path, ignored }) => ({ path, ignored })) });
  else io.out([...described.map(renderRole), ...strays.map(projectRoleNote)].join('\n\n'));
  return exitCodes.done;
};
