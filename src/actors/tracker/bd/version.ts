/** Such as `[0, 49, 6]`. */
export type Version = readonly [number, number, number];

export const parseVersion = (text: string): Version | null => {
  const [, major, minor, patch] = /\bv?(\d+)\.(\d+)\.(\d+)/.exec(text) ?? [];
  return patch === undefined ? null : [Number(major), Number(minor), Number(patch)];
};

const isAtLeast = (version: Version, text: string): boolean => {
  const other = parseVersion(text) ?? [0, 0, 0];
  const index = version.findIndex((part, at) => part !== other[at]);
  return index === -1 || (version[index] ?? 0) > (other[index] ?? 0);
};

/** Features by the first release that has them; bd fails on unknown flags. */
export interface BdCapabilities {
  /** `create --body-file=-`: the description on stdin. */
  readonly bodyFile: boolean;
  /** `list --json` prints a tree without `--flat`. */
  readonly flat: boolean;
  /** `--allow-stale`: read although the file is newer than the database. */
  readonly allowStale: boolean;
  readonly initFromJsonl: boolean;
  readonly initSkipAgents: boolean;
  readonly initNonInteractive: boolean;
}

export const oldestSupported = '0.42.0';

export const isSupported = (version: Version): boolean => isAtLeast(version, oldestSupported);

/**
 * An unreadable version counts as one with everything that all late versions have, and nothing that
 * any lacks.
 */
export const capabilitiesOf = (version: Version | null): BdCapabilities => {
  const has = (tag: string): boolean => version !== null && isAtLeast(version, tag);
  return {
    bodyFile: version === null || has('0.30.3'),
    flat: has('0.59.0') && !has('0.60.0'),
    allowStale: version !== null && !has('0.59.0'),
    initFromJsonl: has('0.41.0'),
    initSkipAgents: has('0.61.0'),
    initNonInteractive: has('1.0.0'),
  };
};
