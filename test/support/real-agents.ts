import { npmProgram } from './npm-program.ts';

const packages = {
  opencode: 'opencode-ai@1.18.33',
  gemini: '@google/gemini-cli@0.61.0',
  copilot: '@github/copilot@1.0.102',
  'claude-agent-acp': '@agentclientprotocol/claude-agent-acp@0.101.0',
  'codex-acp': '@agentclientprotocol/codex-acp@2.6.0',
} as const;
export type RealAgent = keyof typeof packages;

export const realAgent = (name: RealAgent) => npmProgram(name, packages[name]);
