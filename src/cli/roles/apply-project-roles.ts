import type { Settings } from '../../actors/engine/settings.ts';
import type { Role } from '../../machines/task.ts';
import { ConfigError } from '../config/config-error.ts';
import { oneLine } from '../output/safe-text.ts';
import { narrow } from './narrow.ts';
import type { ProjectRoleFile } from './read-project-roles.ts';

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
