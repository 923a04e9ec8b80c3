#!/usr/bin/env node
import { hideBin } from 'yargs/helpers';
import { print, processIo } from './output/io.ts';
import { runAgent } from './run-agent.ts';

/** A pipe may be slow: all output must be written before the process exits. */
const flushed = (stream: NodeJS.WriteStream): Promise<void> =>
  new Promise((resolve) => {
    stream.write('', () => resolve());
  });

const leave = async (code: number): Promise<void> => {
  await Promise.all([flushed(process.stdout), flushed(process.stderr)]);
  process.exit(code);
};

// A reader that closes early, such as head, is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit();
  print('stderr', `agent: the output cannot be written: ${error.message}\n`);
  process.exit(1);
});

// The build makes CommonJS of this, which has no `await` here.
void runAgent(
  { words: hideBin(process.argv), cwd: process.cwd(), env: process.env },
  processIo(),
).then(leave);
