import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chownSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { isAlive } from '../../src/actors/process/pid.ts';

const debian = '/usr/lib/postgresql';

/** Where `initdb` and `pg_ctl` are; null: PostgreSQL is not installed. */
const programs = ((): string | null => {
  const versions = existsSync(debian) ? readdirSync(debian) : [];
  const folders = versions
    .sort((one, other) => Number(other) - Number(one))
    .map((version) => join(debian, version, 'bin'));
  const inPath = (process.env['PATH'] ?? '').split(':');
  return [...folders, ...inPath].find((folder) => existsSync(join(folder, 'initdb'))) ?? null;
})();

/** Why tests that need PostgreSQL are skipped; null: they run. */
export const noPostgres =
  programs === null ? 'PostgreSQL is not installed (Debian: apt install postgresql)' : null;

/** It refuses to run as root. */
const isRoot = process.getuid?.() === 0;
const run = (program: string, ...args: readonly string[]): string => {
  const command = [join(programs ?? '', program), ...args];
  const [file = '', ...rest] = isRoot ? ['runuser', '-u', 'postgres', '--', ...command] : command;
  return execFileSync(file, rest, {
    encoding: 'utf8',
    cwd: '/',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
};

/** Kills every process of the cluster at once, as a machine that loses its power. */
export const killServerIn = (folder: string): void => {
  const file = join(dataIn(folder), 'postmaster.pid');
  const main = readFileSync(file, 'utf8').split('\n')[0] ?? '';
  const children = readFileSync(`/proc/${main}/task/${main}/children`, 'utf8').trim().split(' ');
  // It would start them again.
  for (const pid of [main, ...children]) process.kill(Number(pid), 'SIGKILL');
  while ([main, ...children].some((pid) => isAlive(Number(pid))));
  // They name a process that may wait to be reaped, which PostgreSQL would take for a live one.
  const locks = readdirSync(folder).filter((name) => name.endsWith('.lock'));
  for (const lock of [file, ...locks.map((name) => join(folder, name))]) rmSync(lock);
};

/** Freezes every process of the cluster. @returns thaws them */
export const freezeServerIn = (folder: string): (() => void) => {
  const main = Number(readFileSync(join(dataIn(folder), 'postmaster.pid'), 'utf8').split('\n')[0]);
  process.kill(main, 'SIGSTOP');
  const children = readFileSync(`/proc/${main}/task/${main}/children`, 'utf8').trim().split(' ');
  const signal = (name: NodeJS.Signals): void => {
    // One that has ended stays until its parent asks.
    for (const pid of children) process.kill(Number(pid), name);
  };
  signal('SIGSTOP');
  return () => {
    signal('SIGCONT');
    process.kill(main, 'SIGCONT');
  };
};

/** Makes a standby of the server at `port` in an empty folder; it is named `standby`. */
export const copyServerTo = (folder: string, port: number): void => {
  ownByPostgres(folder);
  const primary = `host=127.0.0.1 port=${port} user=postgres application_name=standby`;
  run('pg_basebackup', '-D', dataIn(folder), '-R', '-X', 'stream', '-c', 'fast', '-d', primary);
};

/** Settings of a cluster that keeps its log for restores. */
export const archived = ['archive_mode=on', `archive_command='cp %p ../archive/%f'`];

/** Makes a base backup of an archived cluster that runs, beside its data. */
export const backUpIn = (folder: string, port: number): void => {
  const backup = join(folder, 'backup');
  const from = ['-h', '127.0.0.1', '-p', `${port}`, '-U', 'postgres'];
  run('pg_basebackup', '-D', backup, '-X', 'none', '-c', 'fast', ...from);
};

/** Puts the base backup in the place of the data; the next start goes on to the restore point. */
export const restoreIn = (folder: string, restorePoint: string): void => {
  const data = dataIn(folder);
  rmSync(data, { recursive: true });
  renameSync(join(folder, 'backup'), data);
  const settings = [
    "restore_command = 'cp ../archive/%f %p'",
    `recovery_target_name = '${restorePoint}'`,
    "recovery_target_action = 'promote'",
  ];
  appendFileSync(join(data, 'postgresql.auto.conf'), `${settings.join('\n')}\n`);
  writeFileSync(join(data, 'recovery.signal'), '');
};

/** Returns when it takes writes. */
export const promoteServerIn = (folder: string): void => {
  run('pg_ctl', '-D', dataIn(folder), '-w', 'promote');
};

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
/**
 * Below the ports that the system gives to clients: one of them would take it while a server is
 * stopped for a moment.
 */
export const freePort = async (): Promise<number> => {
  const port = 12_000 + Math.floor(Math.random() * 18_000);
  return (await isFree(port)) ? port : freePort();
};

const dataIn = (folder: string): string => join(folder, 'data');

const ownByPostgres = (folder: string): void => {
  if (!isRoot) return;
  const [user, group] = ['-u', '-g'].map((flag) =>
    Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' })),
  );
  chownSync(folder, user ?? 0, group ?? 0);
};

/** Makes a cluster in an empty folder; nothing of it survives the loss of power. */
export const makeClusterIn = (folder: string): void => {
  ownByPostgres(folder);
  run('initdb', '-D', dataIn(folder), '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync');
};

/** Starts the cluster. @returns its port, on 127.0.0.1 and as a socket in the folder */
export const startServerIn = async (
  folder: string,
  port?: number,
  settings: readonly string[] = [],
): Promise<number> => {
  const taken = port ?? (await freePort());
  const options = [
    `-p ${taken} -c listen_addresses=127.0.0.1 -c unix_socket_directories=${folder}`,
    '-c max_connections=300 -c fsync=off -c autovacuum_naptime=60',
    ...settings.map((each) => `-c ${each}`),
  ].join(' ');
  run('pg_ctl', '-D', dataIn(folder), '-w', '-l', join(folder, 'log'), '-o', options, 'start');
  return taken;
};

/** `immediate`: as if it was killed. */
export const stopServerIn = (folder: string, mode: 'immediate' | 'fast' = 'immediate'): void => {
  if (existsSync(join(dataIn(folder), 'postmaster.pid')))
    run('pg_ctl', '-D', dataIn(folder), '-w', '-m', mode, 'stop');
};

/** The port of a running server; null without one. */
export const portOfServerIn = (folder: string): number | null => {
  const file = join(dataIn(folder), 'postmaster.pid');
  if (!existsSync(file)) return null;
  const [, , , port, , , , status] = readFileSync(file, 'utf8').split('\n');
  return status?.trim() === 'ready' ? Number(port) : null;
};
