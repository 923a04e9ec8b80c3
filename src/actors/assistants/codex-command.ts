/** Printed in place of a command's output when its sandbox or its program cannot be started. */
const startFailure =
  /^(bwrap: |thread '[^']*' (\(\d+\) )?panicked at linux-sandbox|exec_command failed|(execution error|failed to spawn)\b|codex-linux-sandbox: )/;

/** The reason why codex could not start a command, or null. */
export const commandProblem = (output: string): string | null => {
  const text = output.trim();
  return startFailure.test(text) ? (text.split('\n')[0] ?? '').slice(0, 500) : null;
};
