/** The code of a system error, such as `EACCES`; null for other errors. */
export const codeOf = (error: unknown): string | null =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;

export const hasCode = (error: unknown, ...codes: readonly string[]): error is Error =>
  codes.includes(codeOf(error) ?? '');

/** True when nothing is at a path. */
export const isMissing = (error: unknown): boolean => hasCode(error, 'ENOENT', 'ENOTDIR');
