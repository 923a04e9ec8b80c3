import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The system calls that change a file or a folder, or tell somebody something; a thread is told
 * from a process by its birth.
 */
const calls = [
  ...['openat', 'creat', 'close', 'dup', 'dup2', 'dup3', 'clone', 'clone3', 'fork', 'vfork'],
  ...[
    'write',
    'pwrite64',
    'writev',
    'pwritev',
    'pwritev2',
    'sendto',
    'sendmsg',
    'copy_file_range',
    'sendfile',
  ],
  ...['ftruncate', 'truncate', 'fallocate', 'fsync', 'fdatasync', 'sync_file_range'],
  ...[
    'rename',
    'renameat',
    'renameat2',
    'link',
    'linkat',
    'unlink',
    'unlinkat',
    'mkdir',
    'mkdirat',
    'rmdir',
    'symlink',
  ],
];

/**
 * What runs a program so that it writes down what it does to the disk, in the order in which it
 * does it.
 */
export const recorder = (log: string): readonly string[] => [
  ...['strace', '-f', '-qq', '--seccomp-bpf', '-xx', '-s', '16000000', '-e', 'signal=none'],
  ...['-e', `trace=${calls.join(',')}`, '-o', log, '--'],
];

export type DiskEvent =
  | { readonly type: 'open'; readonly fd: number; readonly path: string; readonly flags: string }
  | { readonly type: 'close'; readonly fd: number }
  /** `offset` null: where the file stands, or its end. */
  | {
      readonly type: 'write';
      readonly fd: number;
      readonly data: Buffer;
      readonly offset: number | null;
    }
  | { readonly type: 'truncate'; readonly fd: number; readonly size: number }
  /** What was written before it began is on disk when it has ended. */
  | { readonly type: 'sync.began' | 'sync.ended'; readonly fd: number }
  | { readonly type: 'rename' | 'link'; readonly from: string; readonly to: string }
  | { readonly type: 'unlink' | 'mkdir'; readonly path: string }
  /** Something is about to leave the program. */
  | { readonly type: 'said'; readonly fd: number; readonly data: Buffer }
  | { readonly type: 'unknown'; readonly fd: number; readonly call: string };

interface Call {
  readonly name: string;
  readonly rest: string;
  readonly result: number;
}

const bytes = (quoted: string): Buffer => Buffer.from(quoted.replaceAll('\\x', ''), 'hex');
const stringsIn = (text: string): readonly Buffer[] =>
  [...text.matchAll(/"((?:\\x[0-9a-f]{2})*)"/g)].map(([, hex]) => bytes(hex ?? ''));
const firstNumber = (text: string): number => Number(/^\s*(-?\d+)/.exec(text)?.[1] ?? Number.NaN);
const numbersAtEnd = (text: string): readonly number[] =>
  text
    .slice(text.lastIndexOf('"') + 1)
    .split(/[^\d-]+/)
    .filter((part) => part !== '')
    .map(Number);

const folders: Readonly<Record<string, number>> = { mkdir: 0, mkdirat: 0, unlink: 0, unlinkat: 0 };
const pairs: Readonly<Record<string, 'rename' | 'link'>> = {
  ...{ rename: 'rename', renameat: 'rename', renameat2: 'rename' },
  ...{ link: 'link', linkat: 'link' },
};

const written = (fd: number, data: Buffer, offset: number | null, length: number): DiskEvent => ({
  type: 'write',
  fd,
  data: data.subarray(0, length),
  offset,
});

/** What a call that ended well did; a failed one did nothing. */
const ended = ({ name, rest, result }: Call, folder: string): DiskEvent | null => {
  if (result < 0) return null;
  const texts = stringsIn(rest);
  const path = (index: number): string => {
    const text = texts[index]?.toString() ?? '';
    return text.startsWith('/') ? text : join(folder, text);
  };
  const fd = firstNumber(rest);
  if (name === 'openat') return { type: 'open', fd: result, path: path(0), flags: rest };
  if (name === 'close') return null;
  if (name === 'pwrite64')
    return written(fd, texts[0] ?? Buffer.alloc(0), numbersAtEnd(rest)[1] ?? null, result);
  if (name === 'write' || name === 'writev') return written(fd, Buffer.concat(texts), null, result);
  if (name === 'ftruncate')
    return { type: 'truncate', fd, size: Number(rest.split(',')[1]?.match(/\d+/)?.[0]) };
  if (name === 'fsync' || name === 'fdatasync') return { type: 'sync.ended', fd };
  const pair = pairs[name];
  if (pair !== undefined) return { type: pair, from: path(0), to: path(1) };
  if (name in folders)
    return { type: name.startsWith('mkdir') ? 'mkdir' : 'unlink', path: path(0) };
  return /^(clone|v?fork|send)/.test(name) ? null : { type: 'unknown', fd, call: name };
};

const begun = (name: string, rest: string): DiskEvent | null => {
  const fd = firstNumber(rest);
  if (name === 'fsync' || name === 'fdatasync') return { type: 'sync.began', fd };
  // Its number is free before the call has ended, and another thread may have it by then.
  if (name === 'close') return { type: 'close', fd };
  if (['write', 'writev', 'sendto', 'sendmsg'].includes(name))
    return { type: 'said', fd, data: Buffer.concat(stringsIn(rest)) };
  return null;
};

const isThread = (rest: string): boolean => rest.includes('CLONE_THREAD');

/**
 * The threads of the first process: what its children do goes to other tables of descriptors, and
 * to other files.
 */
const threadsIn = (lines: readonly string[]): ReadonlySet<string> => {
  const threads = new Set([lines[0]?.split(' ')[0] ?? '']);
  const births = new Map<string, boolean>();
  for (const line of lines) {
    const [, pid = '', text = ''] = /^(\d+)\s+(.*)$/s.exec(line.slice(0, 400)) ?? [];
    if (!threads.has(pid) || !/^(<\.\.\. )?clone/.test(text)) continue;
    const thread = text.startsWith('<') ? births.get(pid) === true : isThread(text);
    births.set(pid, thread);
    const child = / = (\d+)$/.exec(text)?.[1];
    if (thread && child !== undefined) threads.add(child);
  }
  return threads;
};

/** Reads what `recorder` wrote. `folder` is where the program ran. */
export const readRecording = (log: string, folder: string): readonly DiskEvent[] => {
  const lines = readFileSync(log, 'latin1').split('\n').slice(0, -1);
  const threads = threadsIn(lines);
  const unfinished = new Map<string, { readonly name: string; readonly rest: string }>();
  const events: DiskEvent[] = [];
  const add = (event: DiskEvent | null): void => {
    if (event !== null) events.push(event);
  };
  for (const line of lines) {
    const gap = line.indexOf(' ');
    const pid = line.slice(0, gap);
    if (!threads.has(pid)) continue;
    const text = line.slice(gap).trimStart();
    const resumed = /^<\.\.\. (\w+) resumed>/.exec(text);
    const open = text.indexOf('(');
    const before = resumed === null ? undefined : unfinished.get(pid);
    const name = before?.name ?? text.slice(0, open);
    const rest =
      before === undefined ? text.slice(open + 1) : before.rest + text.slice(resumed?.[0].length);
    if (before === undefined) add(begun(name, rest));
    if (text.endsWith('<unfinished ...>')) {
      unfinished.set(pid, { name, rest: rest.slice(0, -'<unfinished ...>'.length) });
      continue;
    }
    unfinished.delete(pid);
    const equals = rest.lastIndexOf(') ');
    const result = Number(/= (-?\d+)/.exec(rest.slice(equals))?.[1] ?? -1);
    add(ended({ name, rest: rest.slice(0, equals), result }, folder));
  }
  return events;
};
