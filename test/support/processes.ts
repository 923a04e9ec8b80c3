import { readdirSync, readFileSync } from 'node:fs';

const read = (pid: string, file: string): string => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
};

/** The command lines of the running processes whose environment had this at their start. */
export const processesWith = (variable: RegExp): readonly string[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && variable.test(`\0${read(name, 'environ')}`))
    .map((pid) => read(pid, 'cmdline').replaceAll('\0', ' ').trim());
