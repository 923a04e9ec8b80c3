import { expect, test } from 'vitest';
import { createIo } from '../../../src/cli/output/io.ts';

const terminalOf = (columns: number) => {
  const written: string[] = [];
  const output = {
    isTTY: true,
    columns,
    rows: 24,
    write: (text: string) => written.push(text),
  };
  return { output, written, io: createIo(output, output, { NO_COLOR: '1' }) };
};

test('live lines are replaced where they began', () => {
  const { io, written } = terminalOf(80);

  io.liveLines(['one', 'two', 'three']);
  io.liveLines(['four']);
  io.out('the end');

  expect(written).toEqual([
    'one\ntwo\nthree',
    '\r\u001b[2A\u001b[J',
    'four',
    '\r\u001b[J',
    'the end\n',
  ]);
});

test('lines that a narrower terminal has wrapped are all replaced', () => {
  const { io, written, output } = terminalOf(80);
  io.liveLines(['x'.repeat(70), 'short']);

  output.columns = 40;
  io.liveLines([]);

  expect(written[1]).toBe('\r\u001b[2A\u001b[J');
  expect(io.terminal()).toEqual({ columns: 40, rows: 24 });
});

test('live lines have no control characters, and nothing is live away from a terminal', () => {
  const { io, written } = terminalOf(80);
  const piped: string[] = [];
  const pipe = { isTTY: false, write: (text: string) => piped.push(text) };

  io.liveLines(['a\u001b[31mb\u202e']);
  createIo(pipe, pipe).liveLines(['nothing']);

  expect(written).toEqual(['ab']);
  expect(piped).toEqual([]);
});

test('notes during a screen are printed once, when it closes', () => {
  const { io, written } = terminalOf(80);

  io.screen(['a board']);
  for (let nth = 0; nth < 500; nth += 1) {
    io.err('warning: the same');
    io.err(`warning ${nth}`);
  }
  io.screen(null);

  const said = written.at(-1)?.trim().split('\n') ?? [];
  expect(said.filter((line) => line === 'warning: the same')).toHaveLength(1);
  expect(said).toHaveLength(100);
});

test('live lines are replaced whole after somebody pressed Enter below them', () => {
  const { io, written } = terminalOf(80);
  io.liveLines(['one', 'two']);

  io.typedLine();
  io.liveLines([]);

  expect(written[1]).toBe('\r\u001b[2A\u001b[J');
});
