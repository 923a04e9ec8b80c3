#!/usr/bin/env node
import { takeFastPath } from './fast-path.ts';
import { print, processIo } from './output/io.ts';

/** A pipe may be slow: the output must be out before the process ends. */
const flushed = (stream: NodeJS.WriteStream): Promise<void> =>
  new Promise((resolve) => {
    stream.write('', () => resolve());
  });

const leave = async (code: number): Promise<void> => {
  await Promise.all([flushed(process.stdout), flushed(process.stderr)]);
  process.exit(code);
};

// A reader that has seen enough, such as head, is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit();
  print('stderr', `agent: the output cannot be written: ${error.message}\n`);
  process.exit(1);
});

const io = processIo();
const runAgent = async (): Promise<number> => {
  const [first, ...words] = process.argv.slice(2);
  if (first === 'open-url') {
    const { openUrl } = await import('./setup/open-url.ts');
    return openUrl(words, io, process.env);
  }
  const code = await takeFastPath(process.argv.slice(2), io);
  if (code !== null) return code;
  const { runCommandLine } = await import('./command-line.ts');
  return runCommandLine(io);
};

await leave(await runAgent());
