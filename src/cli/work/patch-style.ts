import { joined, type Style, styled, type Text } from '../output/styled.ts';

const marks: Readonly<Record<string, Style>> = { '+': 'green', '-': 'red', '@': 'cyan' };

/** The colours of git; notes of ours begin with `#`. */
export const stylePatch = (patch: string): Text => {
  let inHunk = false;
  const lines = patch.split('\n').map((line): Text => {
    if (line.startsWith('@@')) inHunk = true;
    if (line.startsWith('diff --git ')) inHunk = false;
    if (line === '') return line;
    if (line.startsWith('#')) return [styled('yellow', line)];
    if (!inHunk) return [styled('bold', line)];
    const style = marks[line[0] ?? ''];
    return style === undefined ? line : [styled(style, line)];
  });
  return joined(lines, '\n');
};
