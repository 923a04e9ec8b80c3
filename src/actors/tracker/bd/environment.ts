const inheritedVariables: ReadonlySet<string> = new Set([
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'LANG',
  'TZ',
  'TMPDIR',
  'SSH_AUTH_SOCK',
  'GIT_AUTHOR_NAME',
  'GIT_AUTHOR_EMAIL',
  'GIT_COMMITTER_NAME',
  'GIT_COMMITTER_EMAIL',
  'SystemRoot',
  'APPDATA',
]);
const inheritedPrefixes = ['LC_', 'XDG_', 'BEADS_DOLT_'];

/**
 * No daemon, no pager, no metrics, one JSON form. A bd that does not know one of these ignores it.
 */
const bdSettings = {
  BEADS_NO_DAEMON: '1',
  BEADS_AUTO_START_DAEMON: 'false',
  BD_NON_INTERACTIVE: '1',
  BD_LAST_TOUCHED_FALLBACK: '0',
  BD_JSON_ENVELOPE: '1',
  BD_NO_PAGER: '1',
  NO_COLOR: '1',
  BD_DISABLE_METRICS: '1',
  BD_DISABLE_EVENT_FLUSH: '1',
  DO_NOT_TRACK: '1',
} as const;

/**
 * The environment of every bd: an allow-list, so that no provider key and no `BEADS_DIR` of another
 * project gets in.
 */
export const bdEnvironment = (from: NodeJS.ProcessEnv): Readonly<Record<string, string>> => ({
  ...Object.fromEntries(
    Object.entries(from).filter(
      (entry): entry is [string, string] =>
        entry[1] !== undefined &&
        (inheritedVariables.has(entry[0]) ||
          inheritedPrefixes.some((prefix) => entry[0].startsWith(prefix))),
    ),
  ),
  ...bdSettings,
});
