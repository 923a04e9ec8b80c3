import { askTool } from './ask.ts';
import { bashTool } from './bash.ts';
import { editTool } from './edit.ts';
import { findTool } from './find.ts';
import { finishTool } from './finish.ts';
import { grepTool } from './grep.ts';
import type { OwnTool } from './port.ts';
import { readTool } from './read.ts';
import { writeTool } from './write.ts';

/** In the order in which models see the tools. */
export const toolbox: readonly OwnTool[] = [
  readTool,
  writeTool,
  editTool,
  bashTool,
  grepTool,
  findTool,
  askTool,
  finishTool,
];

export const toolNames = toolbox.map(({ name }) => name);

/** Undefined for one of others; a model may also call a tool that does not exist. */
const ownTool = (name: string): OwnTool | undefined => toolbox.find((tool) => tool.name === name);

export const isRepeatable = (name: string): boolean => ownTool(name)?.isRepeatable === true;

export const readsOnly = (name: string): boolean => ownTool(name)?.files === 'reads';

export const changesFiles = (name: string): boolean => ownTool(name)?.files === 'changes';

/** Also true for tools of others. */
export const mayChangeFiles = (name: string): boolean =>
  (ownTool(name)?.files ?? 'changes') === 'changes';
