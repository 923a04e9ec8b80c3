/** The rows of a CSV text, each an array of fields. */
export const parseCsv = (text) =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => line.split(','));
