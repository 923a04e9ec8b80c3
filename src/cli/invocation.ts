/** The words of a command line, and where they were given. */
export interface Invocation {
  readonly words: readonly string[];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}
