/** The end of an output, at most 20 lines. */
export const lastLines = (output: string, count = 20): string =>
  output.trimEnd().split('\n').slice(-count).join('\n');
