export const lastLines = (output: string, count = 20): string =>
  output.trimEnd().split('\n').slice(-count).join('\n');

/** Test runners and compilers print such a line where something fails. */
const failingLine = /^\s*(?:not ok\b|✖|✗|✕|×|FAIL|--- FAIL|\d+\) )|Error\b|\berror[: ]/;
const firstPart = 2 / 5;

/**
 * The first lines that say what failed, and the end, in `count` lines. Without such lines, or when
 * the end has them, the end alone.
 */
export const failingLines = (output: string, count = 20): string => {
  const lines = output.trimEnd().split('\n');
  const first = lines.findIndex((line) => failingLine.test(line));
  if (first < 0 || first >= lines.length - count) return lastLines(output, count);
  const firstLines = Math.floor(count * firstPart);
  const end = lines.length - (count - firstLines - 1);
  const left = end - first - firstLines;
  return [
    ...lines.slice(first, first + firstLines),
    `[… ${left} lines are left out …]`,
    ...lines.slice(end),
  ].join('\n');
};
