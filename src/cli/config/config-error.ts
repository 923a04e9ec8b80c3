/** The process exits with 78 before it opens anything. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}
