import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { homeOf } from '../config/places/home.ts';
import type { HandlerEnvironment } from './registration.ts';

const runMs = 15_000;

const runProgram: HandlerEnvironment['run'] = ([program = '', ...args]) =>
  new Promise((resolve) => {
    execFile(program, args, { timeout: runMs }, (error, stdout) =>
      resolve(error === null ? { ok: true, detail: stdout } : { ok: false, detail: error.message }),
    );
  });

export const thisProgram = (env: NodeJS.ProcessEnv, force = false): HandlerEnvironment => ({
  platform: process.platform,
  env,
  home: homeOf(env),
  node: process.execPath,
  script: fileURLToPath(new URL('../agent.js', import.meta.url)),
  uid: process.getuid?.() ?? null,
  force,
  run: runProgram,
});
