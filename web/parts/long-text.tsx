import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { numbered } from '../model/format.ts';
import { saveFile } from './save-file.ts';

/** Megabytes drawn at once, in one line, would stop the browser for half a minute. */
const firstAtMost = 10_000;
const partAtMost = 100_000;

interface LongTextProps {
  readonly text: string;
  readonly draw?: (text: string) => ComponentChildren;
}

/** The beginning of a text; the rest in parts that are drawn when they are asked for. */
export const LongText = ({ text, draw = (part) => part }: LongTextProps) => {
  const parts = useSignal(0);
  const end = firstAtMost + parts.value * partAtMost;
  const left = text.length - end;
  if (text.length <= firstAtMost) return <>{draw(text)}</>;
  const from = (part: number): number => firstAtMost + part * partAtMost;
  return (
    <>
      <span class="part">{draw(text.slice(0, firstAtMost))}</span>
      {Array.from({ length: parts.value }, (_, part) => (
        <span key={`${part}`} class="part">
          {draw(text.slice(from(part), from(part + 1)))}
        </span>
      ))}
      {left > 0 && (
        <span class="part">
          <button
            type="button"
            class="link"
            onClick={() => {
              parts.value += 1;
            }}
          >
            {left > partAtMost
              ? `Show ${partAtMost.toLocaleString('en')} of the ${numbered(left, 'character')} left`
              : `Show ${numbered(left, 'character')} more`}
          </button>{' '}
          <button type="button" class="link" onClick={() => saveFile(new Blob([text]), 'text.txt')}>
            Save it all
          </button>
        </span>
      )}
    </>
  );
};
