/** In the order in which models see the tools. This file imports no tool, so that it loads fast. */
export const toolNames = [
  'read',
  'write',
  'edit',
  'bash',
  'grep',
  'find',
  'ask',
  'finish',
] as const;
export type ToolName = (typeof toolNames)[number];
