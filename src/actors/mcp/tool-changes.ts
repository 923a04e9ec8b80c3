import type { McpTool, ToolChange } from './port.ts';

const changeLength = 600;
const shortChange = (text: string): string =>
  text.length > changeLength ? `${text.slice(0, changeLength)}…` : text;

/** Null for a tool that is as it was first seen, or allowed later. */
export const changeOfTool = (pinned: McpTool | undefined, current: McpTool): ToolChange | null => {
  const { name, description, fingerprint } = current;
  if (fingerprint === pinned?.fingerprint) return null;
  if (pinned === undefined)
    return {
      fingerprint,
      why: `${name} is new on its server. It says: ${shortChange(description)}`,
    };
  const why =
    pinned.description === description
      ? `${name} takes other arguments than when it was first seen.`
      : `${name} has changed since it was first seen. It said: ${shortChange(pinned.description)}\nNow it says: ${shortChange(description)}`;
  return { fingerprint, why };
};

export const changedTools = (
  tools: readonly McpTool[],
  pinned: readonly McpTool[],
): readonly (ToolChange & Pick<McpTool, 'tool'>)[] =>
  tools.flatMap((current) => {
    const change = changeOfTool(
      pinned.find(({ name }) => name === current.name),
      current,
    );
    return change === null ? [] : [{ ...change, tool: current.tool }];
  });
