import { readFileSync } from 'node:fs';
import { basename } from 'node:path';

/**
 * Runs a program so that each start of a program, each connection and each file that is opened is
 * written down.
 */
export const recorder = (log: string): readonly string[] => [
  ...['strace', '-f', '-y', '-qq', '--seccomp-bpf', '-s', '4096', '-e', 'signal=none'],
  ...['-e', 'trace=execve,execveat,connect,openat,openat2', '-o', log, '--'],
];

export interface Recorded {
  readonly kind: 'start' | 'connect' | 'open';
  /** The program, the address, or the path with its links resolved. */
  readonly what: string;
  /** The call of the workspace in which it happened. */
  readonly during: string;
  /** The program that did it. */
  readonly by: string;
}

const entry = /^(\d+) +(execve|execveat|connect|openat|openat2)\((.*)$/;
const calledFile = /^AT_FDCWD<[^>]*>, "\/call\/(\w+)"/;
/** The path that the kernel opened, links resolved: strace prints it behind the descriptor. */
const descriptor = /^(\d+) .*open.* = \d+<((?:[^>\\]|\\.)*)>$/;

const unescaped = (text: string): string =>
  text.replace(
    /\\(?:x([0-9a-f]{2})|([0-7]{1,3})|(.))/g,
    (_, hex?: string, octal?: string, other?: string) => {
      if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16));
      if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8));
      return { n: '\n', t: '\t', r: '\r' }[other ?? ''] ?? other ?? '';
    },
  );
const firstText = (rest: string): string => unescaped(/"((?:[^"\\]|\\.)*)"/.exec(rest)?.[1] ?? '');

/** Reads what `recorder` wrote, from the first call of the workspace on. */
export const readRecording = (log: string): readonly Recorded[] => {
  const programs = new Map<string, string>();
  const recorded: Recorded[] = [];
  let during = '';
  for (const line of readFileSync(log, 'latin1').split('\n')) {
    const [, pid = '', call = '', rest = ''] = entry.exec(line) ?? [];
    during = calledFile.exec(rest)?.[1] ?? during;
    const by = (of: string): string => programs.get(of) ?? 'server';
    if (call === 'connect') recorded.push({ kind: 'connect', what: rest, during, by: by(pid) });
    if (call.startsWith('exec')) {
      const what = firstText(rest);
      recorded.push({ kind: 'start', what, during, by: by(pid) });
      if (during !== '') programs.set(pid, basename(what));
    }
    const [, opener = '', path] = descriptor.exec(line) ?? [];
    if (path !== undefined)
      recorded.push({ kind: 'open', what: unescaped(path), during, by: by(opener) });
  }
  return recorded.filter((each) => each.during !== '');
};
