export const issueTextAtMost = 65_536;
const blockersAtMost = 100;

const sentence = /^[\s>*_-]*(?:is )?(?:blocked by|depends on)\b:?(.*)$/i;
const openItem = /^\s*(?:[-*+]|\d+[.)])\s+\[ \]\s+#(\d+)\b/;
const anyNumber = /(?<![\w/])#(\d+)\b/g;

/** `Blocked by #3, #4` and the open items of a task list, `- [ ] #5`; not the issue itself. */
export const blockersIn = (issue: {
  readonly number: number;
  readonly body?: string | null | undefined;
}): readonly number[] => {
  const found = (issue.body ?? '')
    .slice(0, issueTextAtMost)
    .split('\n')
    .flatMap((line) => {
      const [, item] = openItem.exec(line) ?? [];
      if (item !== undefined) return [item];
      const [, rest] = sentence.exec(line) ?? [];
      return [...(rest ?? '').matchAll(anyNumber)].map(([, number = '']) => number);
    });
  const numbers = new Set(found.map(Number));
  numbers.delete(issue.number);
  return [...numbers].slice(0, blockersAtMost);
};
