#!/usr/bin/env node
import { messageOf } from '../machines/message-of.ts';
import { hubFolderOf } from './hub/hub-place.ts';
import { runHub } from './hub/run-hub.ts';
import { print } from './output/io.ts';

/** The process of the hub: `agent hub start` and `agent open` start it, with the port. */
const log = (message: string, facts: object = {}): void =>
  print('stderr', `${JSON.stringify({ time: new Date().toISOString(), message, ...facts })}\n`);

// A full disk under the log ends nothing.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});

const main = async (): Promise<void> => {
  // Its sockets and its lock, too, are for this person alone.
  process.umask(0o077);
  const folder = hubFolderOf(process.env);
  const hub = await runHub({ folder, port: Number(process.argv[2]), env: process.env, log });
  // Another one was first.
  if (hub === null) return;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void hub.stop());
  await hub.ended;
  process.exit(0);
};

main().catch((error: unknown) => {
  log('the hub did not start', { error: messageOf(error) });
  process.exit(1);
});
