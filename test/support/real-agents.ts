import { npmProgram } from './npm-program.ts';

const packages = {
  opencode: 'opencode-ai@1.18.33',
  gemini: '@google/gemini-cli@0.61.0',
  copilot: '@github/copilot@1.0.102',
} as const;
export type RealAgent = keyof typeof packages;

export const realAgent = (name: RealAgent) => npmProgram(name, packages[name]);
