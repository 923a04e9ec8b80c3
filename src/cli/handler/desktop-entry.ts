/** The name of our entry in mimeapps.list. */
export const desktopId = 'agent-task-server.desktop';

const quotedArgument = (argument: string): string =>
  `"${argument.replace(/["`$\\]/g, '\\$&').replaceAll('%', '%%')}"`;

/**
 * The .desktop file that opens `agent://` links. The paths have no control characters. Three layers
 * of the Desktop Entry Specification: quotes, `%` of field codes, and the backslashes of every
 * string value.
 */
export const desktopEntry = ({
  node,
  script,
}: {
  readonly node: string;
  readonly script: string;
}): string =>
  [
    '[Desktop Entry]',
    'Type=Application',
    'Name=Agent Task Server',
    `Exec=${`${quotedArgument(node)} ${quotedArgument(script)} open-url -- %u`.replaceAll('\\', '\\\\')}`,
    'NoDisplay=true',
    'Terminal=true',
    'MimeType=x-scheme-handler/agent;',
    '',
  ].join('\n');

const defaults = 'Default Applications';
const sectionHeader = `[${defaults}]`;
const cache = 'MIME Cache';
const assignment = /^(\s*x-scheme-handler\/agent\s*=\s*)(\S[\s\S]*|)$/;

interface MimeappsLine {
  readonly text: string;
  readonly section: string;
  /** The value for our scheme, if this line assigns it. */
  readonly value: string | null;
}

const mimeappsLines = (text: string): readonly MimeappsLine[] => {
  let section = '';
  return text.split('\n').map((line) => {
    section = /^\s*\[(.*)\]\s*$/.exec(line)?.[1] ?? section;
    return { text: line, section, value: assignment.exec(line)?.[2] ?? null };
  });
};

const idsOf = (value: string): readonly string[] =>
  value
    .split(';')
    .map((id) => id.trim())
    .filter((id) => id !== '');

const withoutOurs = (value: string): string =>
  value
    .split(';')
    .filter((id) => id.trim() !== desktopId)
    .join(';');

const assigns = (line: MimeappsLine, section: string): boolean =>
  line.section === section && line.value !== null;

/** The last line wins, as in GLib. */
const entryIdsIn = (text: string, section: string): readonly string[] =>
  idsOf(mimeappsLines(text).findLast((line) => assigns(line, section))?.value ?? '');

const mapValues = (text: string, change: (value: string) => string | null): string =>
  mimeappsLines(text)
    .flatMap((line) => {
      if (line.section !== defaults || line.value === null) return [line.text];
      const value = change(line.value);
      return value === null
        ? []
        : [line.text.replace(assignment, (_, start: string) => start + value)];
    })
    .join('\n');

export const defaultHandler = (mimeapps: string): string | null =>
  entryIdsIn(mimeapps, defaults)[0] ?? null;

/**
 * Another program that claims `agent://`, and so opens it where there is no default; null without
 * one.
 */
export const otherClaimant = (mimeinfoCache: string): string | null =>
  entryIdsIn(mimeinfoCache, cache).find((id) => id !== desktopId) ?? null;

/**
 * Makes us the default. The previous default stays behind us in the list, so that removing us
 * restores it.
 */
export const withOurDefault = (mimeapps: string): string => {
  if (mimeappsLines(mimeapps).some((line) => assigns(line, defaults)))
    return mapValues(mimeapps, (value) =>
      idsOf(value)[0] === desktopId ? value : `${desktopId};${withoutOurs(value)}`,
    );
  const lines = mimeapps.split('\n');
  const ours = `x-scheme-handler/agent=${desktopId};`;
  const at = lines.findIndex((line) => line.trim() === sectionHeader);
  if (at >= 0) return lines.toSpliced(at + 1, 0, ours).join('\n');
  return `${mimeapps}${mimeapps === '' || mimeapps.endsWith('\n') ? '' : '\n'}${sectionHeader}\n${ours}\n`;
};

/**
 * Removes us, and nothing else, from [Default Applications]; drops the section when it is empty and
 * last.
 */
export const withoutOurDefault = (mimeapps: string): string => {
  const changed = mapValues(mimeapps, (value) => {
    if (!idsOf(value).includes(desktopId)) return value;
    const rest = withoutOurs(value);
    return idsOf(rest).length === 0 ? null : rest;
  });
  return changed !== mimeapps && changed.endsWith(`${sectionHeader}\n`)
    ? changed.slice(0, -sectionHeader.length - 1)
    : changed;
};
