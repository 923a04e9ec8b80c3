/** Every tool there is, in the order in which models see them; apart from the tools, so that to know them costs nothing. */
export const toolNames = ['read', 'write', 'edit', 'bash', 'grep', 'find', 'ask', 'finish'] as const;
export type ToolName = (typeof toolNames)[number];
