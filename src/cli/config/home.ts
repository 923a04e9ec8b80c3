import { homedir } from 'node:os';

export const homeOf = (env: NodeJS.ProcessEnv): string => env['HOME'] || homedir();
