import { npmProgram } from './npm-program.ts';

export const realCodex = () => npmProgram('codex', '@openai/codex@0.169.0');
