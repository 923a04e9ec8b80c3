const units = ['B', 'kB', 'MB', 'GB', 'TB'] as const;

/** `512 B`, `1.2 MB`. */
export const bytesText = (bytes: number): string => {
  let value = bytes;
  let at = 0;
  while (value >= 999.95 && at < units.length - 1) {
    value /= 1_000;
    at += 1;
  }
  return `${at === 0 ? value : value.toFixed(1)} ${units[at]}`;
};

/** `5.1 MiB`, rounded up, so that one byte over a limit does not read as the limit. */
export const mebibytesText = (bytes: number): string =>
  `${Math.ceil((bytes / 1024 ** 2) * 10) / 10} MiB`;
