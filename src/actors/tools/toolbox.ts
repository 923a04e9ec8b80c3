import { askTool } from './ask.ts';
import { bashTool } from './bash.ts';
import { editTool } from './edit.ts';
import { findTool } from './find.ts';
import { finishTool } from './finish.ts';
import { grepTool } from './grep.ts';
import type { Tool } from './port.ts';
import { readTool } from './read.ts';
import { writeTool } from './write.ts';

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
type ToolName = (typeof toolNames)[number];

export interface ToolEntry {
  readonly tool: Tool;
  /**
   * What a call does to files. A call that `changes` them waits while another attempt works in the
   * same folder; neighbouring calls that `read` run at once.
   */
  readonly files: 'changes' | 'reads' | 'ignores';
  /** A second identical call does no more than the first, so a lost result is no loss. */
  readonly isRepeatable: boolean;
}

const entries: Readonly<Record<ToolName, ToolEntry>> = {
  read: { tool: readTool, files: 'reads', isRepeatable: true },
  write: { tool: writeTool, files: 'changes', isRepeatable: true },
  edit: { tool: editTool, files: 'changes', isRepeatable: false },
  bash: { tool: bashTool, files: 'changes', isRepeatable: false },
  grep: { tool: grepTool, files: 'reads', isRepeatable: true },
  find: { tool: findTool, files: 'reads', isRepeatable: true },
  ask: { tool: askTool, files: 'ignores', isRepeatable: true },
  finish: { tool: finishTool, files: 'ignores', isRepeatable: true },
};

export const toolbox: readonly Tool[] = toolNames.map((name) => entries[name].tool);

/** A model may call a tool that does not exist. */
const entryOf = (tool: string): ToolEntry | null => {
  const name = toolNames.find((known) => known === tool);
  return name === undefined ? null : entries[name];
};

export const isRepeatable = (tool: string): boolean => entryOf(tool)?.isRepeatable ?? false;

export const readsOnly = (tool: string): boolean => entryOf(tool)?.files === 'reads';

/** Also true for tools of others. */
export const mayChangeFiles = (tool: string): boolean =>
  entryOf(tool) === null || changesFiles(tool);

export const changesFiles = (tool: string): boolean => entryOf(tool)?.files === 'changes';
