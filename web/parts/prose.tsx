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

/** Between two fences: code. */
const drawBlocks = (text: string) =>
  text.split(/^```.*\n([\s\S]*?)^```[ \t]*(?:\n|$)/m).map((block, index) =>
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
