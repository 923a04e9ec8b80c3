import type { TaskView } from '../../actors/journal/task-view.ts';

type Comment = NonNullable<TaskView['review']>['comments'][number];

const lastLineOf = ({ line, end_line }: Comment): number => end_line ?? line ?? 0;

const placeText = ({ path, line, end_line }: Comment): string =>
  `${path}${line === undefined ? '' : `:${line}`}${end_line === undefined ? '' : `-${end_line}`}`;

const linesOf = (comment: Comment): readonly string[] => {
  const { id, text, answer, answered_by, open } = comment;
  const state = open ? 'open' : answered_by === undefined ? 'closed' : `attempt ${answered_by}`;
  return [
    `# comment ${id} on ${placeText(comment)} (${state})`,
    ...text.split('\n').map((line) => `#   ${line}`),
    ...(answer === undefined ? [] : answer.split('\n').map((line) => `#   > ${line}`)),
  ];
};

/** The path after `+++ `; git quotes names with odd characters. */
const pathIn = (line: string): string => {
  const name = line.slice(4).replace(/\t$/, '');
  const plain = name.startsWith('"') ? name.slice(1, -1) : name;
  return plain.replace(/^b\//, '');
};

/**
 * The patch with each comment below its last line, and those on lines that the patch does not show
 * above it. It is for people: `git apply` does not take it.
 */
export const withComments = (patch: string, comments: readonly Comment[]): string => {
  const left = new Set(comments);
  const take = (path: string, line: number): readonly string[] =>
    comments
      .filter(
        (comment) => left.has(comment) && comment.path === path && lastLineOf(comment) === line,
      )
      .flatMap((comment) => {
        left.delete(comment);
        return linesOf(comment);
      });
  let path = '';
  let next = 0;
  let inHunk = false;
  const shown = patch.split('\n').flatMap((line) => {
    const [, first] = /^@@ -\d+(?:,\d+)? \+(\d+)/.exec(line) ?? [];
    if (first !== undefined) {
      inHunk = true;
      next = Number(first);
      return [line];
    }
    if (line.startsWith('diff --git ')) inHunk = false;
    if (!inHunk) {
      if (!line.startsWith('+++ ')) return [line];
      path = pathIn(line);
      return [line, ...take(path, 0)];
    }
    if (!line.startsWith('+') && !line.startsWith(' ')) return [line];
    next += 1;
    return [line, ...take(path, next - 1)];
  });
  const above = [...left].flatMap(linesOf);
  return [...above, ...(above.length === 0 ? [] : ['']), ...shown].join('\n');
};
