import { stripVTControlCharacters } from 'node:util';

export type FailureKind =
  | 'absent'
  | 'broken'
  | 'capability'
  | 'not_initialized'
  | 'ambiguous'
  | 'claimed'
  | 'not_claimable'
  | 'blocked'
  | 'cycle'
  | 'duplicate'
  | 'stale'
  | 'corrupt'
  | 'newer'
  | 'lock'
  | 'invalid'
  | 'crash'
  | 'server_down'
  | 'frozen'
  | 'not_found'
  | 'timeout'
  | 'too_large'
  | 'unreadable'
  | 'unknown';

export interface BdFailure {
  readonly kind: FailureKind;
  /** One line of bd's own text, fit to be shown. */
  readonly words: string;
  /** The part of bd's text that the pattern captures: the holder, the status or the blockers. */
  readonly about: string | null;
}

/** The order counts: the text of the broken npm shim would otherwise match not_found. */
const patterns: readonly (readonly [FailureKind, RegExp])[] = [
  ['broken', /bd binary not found|Syntax error: |cannot execute|Exec format error/],
  ['capability', /unknown (?:command|flag|shorthand)/],
  ['not_initialized', /no beads database|no active beads workspace/i],
  ['ambiguous', /ambiguous ID/],
  ['claimed', /already claimed by (\S.*)/],
  ['not_claimable', /not claimable: status (\S+)/],
  ['blocked', /blocked by (?:open issues )?\[([^[\]]*)\]/],
  ['cycle', /would create a cycle|depend on itself/],
  ['duplicate', /UNIQUE constraint failed: dependencies|already exists/],
  ['stale', /out of sync with JSONL/i],
  ['corrupt', /Auto-import skipped|Error parsing line/],
  [
    'newer',
    /newer than (?:this|the) (?:binary|bd|version)|newer version of bd|unsupported schema|schema version.{0,100}newer|upgrade bd/i,
  ],
  [
    'lock',
    /database is locked|lock busy|access lock timeout|another process holds the exclusive lock|locked by another dolt|database is read only|serialization|Error 1213/i,
  ],
  ['invalid', /validation failed|invalid (?:status|issue type|priority)/i],
  ['crash', /panic:|SIGSEGV|nil pointer/],
  ['server_down', /server appears down|connection refused|i\/o timeout|circuit/i],
  ['not_found', /no issues? found|not found|does not exist/i],
];

const failureLengthAtMost = 300;

/** bd ends with its error, or begins with it when the usage follows. */
const matchingLine = (text: string, pattern: RegExp | null): string => {
  const lines = stripVTControlCharacters(text)
    .split('\n')
    .map((line) => line.replace(/\p{Cc}/gu, ' ').trim())
    .filter((line) => line !== '');
  const line =
    (pattern === null ? undefined : lines.find((each) => pattern.test(each))) ?? lines[0] ?? '';
  return line.length > failureLengthAtMost ? `${line.slice(0, failureLengthAtMost)}…` : line;
};

export const bdFailure = (
  kind: FailureKind,
  words: string,
  about: string | null = null,
): BdFailure => ({
  kind,
  words: matchingLine(words, null),
  about,
});

/** bd begins or ends with its error; the middle (characters) is not looked at. */
const partLength = 50_000;
const endsOf = (text: string): string =>
  text.length <= 2 * partLength ? text : `${text.slice(0, partLength)}\n${text.slice(-partLength)}`;

export const classifyBdText = (whole: string): BdFailure => {
  const text = endsOf(whole);
  for (const [kind, pattern] of patterns) {
    const match = pattern.exec(text);
    if (match !== null)
      return { kind, words: matchingLine(text, pattern), about: match[1]?.trim() ?? null };
  }
  return { kind: 'unknown', words: matchingLine(text, null), about: null };
};

export const remedyFor = ({ kind }: BdFailure): string => {
  const remedies: Partial<Record<FailureKind, string>> = {
    absent: 'install bd, or set tracker.bd_path to it',
    broken: 'install bd again, or set tracker.bd_path to one that works',
    capability: 'install bd 0.42 or later',
    not_initialized: "run 'agent init' in the project",
    corrupt: 'repair or remove that line of .beads/issues.jsonl',
    newer: 'install the bd that wrote the database, or a newer one',
    lock: 'another program holds the database; try again when it has ended',
    stale: "run 'bd import -i .beads/issues.jsonl' in the project",
    server_down: 'start the database server of bd (bd dolt start)',
    frozen: 'unfreeze the project in bd',
    too_large: 'the project has more tasks than one answer can hold',
  };
  return remedies[kind] ?? "try 'bd list' in the project, and 'agent doctor'";
};
