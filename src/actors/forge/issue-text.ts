export const issueTextAtMost = 65_536;
const blockersAtMost = 100;

const sentence = /^[\s>*_-]*(?:is )?(?:blocked by|depends on)\b:?(.*)$/i;
const openItem = /^\s*(?:[-*+]|\d+[.)])\s+\[ \]\s+#(\d+)\b/;
const anyNumber = /(?<![\w/])#(\d+)\b/g;

/** `Blocked by #3, #4` and the open items of a task list, `- [ ] #5`. */
export const blockersIn = (text: string): readonly number[] => {
  const found = text
    .slice(0, issueTextAtMost)
    .split('\n')
    .flatMap((line) => {
      const [, item] = openItem.exec(line) ?? [];
      if (item !== undefined) return [item];
      const [, rest] = sentence.exec(line) ?? [];
      return [...(rest ?? '').matchAll(anyNumber)].map(([, number = '']) => number);
    });
  return [...new Set(found.map(Number))].slice(0, blockersAtMost);
};
