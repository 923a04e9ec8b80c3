/** What is printed instead of a command's own output when its sandbox cannot be made or its program cannot be started. */
const startFailure =
  /^(bwrap: |thread '[^']*' (\(\d+\) )?panicked at linux-sandbox|exec_command failed|(execution error|failed to spawn)\b|codex-linux-sandbox: )/;

/** Why a command of codex could not even be started, or null when it was. */
export const commandProblem = (output: string): string | null => {
  const text = output.trim();
  return startFailure.test(text) ? (text.split('\n')[0] ?? '').slice(0, 500) : null;
};
