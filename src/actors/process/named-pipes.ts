import { closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { execa } from 'execa';

export interface NamedPipe {
  /** The child's end; close it once the child has started. */
  readonly fd: number;
  readonly readable: Readable;
}

const mkfifoMs = 5_000;
const { O_RDONLY, O_WRONLY, O_NONBLOCK } = constants;

const openPipe = (path: string): NamedPipe => {
  const end = openSync(path, O_RDONLY | O_NONBLOCK);
  const readable = new Socket({ fd: end, readable: true, writable: false });
  return { fd: openSync(path, O_WRONLY), readable };
};

/**
 * Pipes for the two outputs of a command. Node gives a child sockets, which cannot be opened by
 * name: `echo x > /dev/stderr` fails. Null where pipes cannot be made, for instance on a full disk;
 * the caller then uses sockets.
 */
export const openNamedPipes = async (): Promise<
  readonly [stdout: NamedPipe, stderr: NamedPipe] | null
> => {
  let folder: string | null = null;
  try {
    folder = mkdtempSync(join(tmpdir(), 'agent-pipes-'));
    const paths = [join(folder, 'stdout'), join(folder, 'stderr')] as const;
    await execa('mkfifo', ['-m', '600', ...paths], { timeout: mkfifoMs });
    return [openPipe(paths[0]), openPipe(paths[1])];
  } catch {
    return null;
  } finally {
    if (folder !== null) rmSync(folder, { recursive: true, force: true });
  }
};

/** Closes our copies of the child's ends; otherwise the outputs would stay open after the child. */
export const closeChildEnds = (pipes: readonly NamedPipe[]): void => {
  for (const { fd } of pipes) closeSync(fd);
};
