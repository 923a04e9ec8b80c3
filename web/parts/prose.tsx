import { Fragment } from 'preact';
import { LongText } from './long-text.tsx';

const drawWords = (text: string) =>
  text
    .split(/(`[^`\n]+`|\*\*[^*\n]+\*\*)/)
    .map((part, index) => (
      <Fragment key={`${index}`}>
        {index % 2 === 0 ? (
          part
        ) : part.startsWith('`') ? (
          <code>{part.slice(1, -1)}</code>
        ) : (
          <strong>{part.slice(2, -2)}</strong>
        )}
      </Fragment>
    ));

const drawLine = (line: string) => {
  const heading = /^#{1,6} (.*)/.exec(line)?.[1];
  return heading === undefined ? (
    drawWords(line.replace(/^(\s*)[-*] /, '$1• '))
  ) : (
    <strong>{drawWords(heading)}</strong>
  );
};

const opensCode = /^```.*$/;
const closesCode = /^```[ \t]*$/;

/** Words and code between two fences, in turn. A fence that nothing closes opens no code. */
export const proseBlocks = (text: string): readonly string[] => {
  const lines = text.split('\n');
  const lastFence = lines.findLastIndex((line) => closesCode.test(line));
  const blocks: string[] = [];
  let from = 0;
  let isCode = false;
  for (const [at, line] of lines.entries()) {
    const isFence = isCode ? closesCode.test(line) : at < lastFence && opensCode.test(line);
    if (!isFence) continue;
    blocks.push(
      lines
        .slice(from, at)
        .map((each) => `${each}\n`)
        .join(''),
    );
    from = at + 1;
    isCode = !isCode;
  }
  return [...blocks, lines.slice(from).join('\n')];
};

const drawBlocks = (text: string) =>
  proseBlocks(text).map((block, index) =>
    index % 2 === 1 ? (
      <code key={`${index}`} class="part box sunken">
        {block}
      </code>
    ) : (
      block
        .replace(/\n$/, '')
        .split('\n')
        .map((line, nth) => (
          <Fragment key={`${index} ${nth}`}>
            {nth > 0 && '\n'}
            {drawLine(line)}
          </Fragment>
        ))
    ),
  );

/** A text that may be Markdown: headings, bold, code and lists are drawn, the rest stays. */
export const Prose = ({ text, kind = 'prose' }: { text: string; kind?: 'prose' | 'asked' }) => (
  <div class={kind}>
    <LongText text={text} draw={drawBlocks} />
  </div>
);
