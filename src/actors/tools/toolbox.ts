import { askTool } from './ask.ts';
import { bashTool } from './bash.ts';
import { editTool } from './edit.ts';
import { findTool } from './find.ts';
import { finishTool } from './finish.ts';
import { grepTool } from './grep.ts';
import { type ToolName, toolNames } from './names.ts';
import type { Tool } from './port.ts';
import { readTool } from './read.ts';
import { writeTool } from './write.ts';

const toolsByName: Readonly<Record<ToolName, Tool>> = {
  read: readTool,
  write: writeTool,
  edit: editTool,
  bash: bashTool,
  grep: grepTool,
  find: findTool,
  ask: askTool,
  finish: finishTool,
};

export const toolbox: readonly Tool[] = toolNames.map((name) => toolsByName[name]);

/** Tools whose second identical call does no more than the first. */
export const repeatableTools: ReadonlySet<string> = new Set([
  ...[readTool.name, grepTool.name, findTool.name],
  ...[writeTool.name, askTool.name, finishTool.name],
]);

export const readOnlyTools: ReadonlySet<string> = new Set([
  readTool.name,
  grepTool.name,
  findTool.name,
]);

export const changingTools: ReadonlySet<string> = new Set([
  writeTool.name,
  editTool.name,
  bashTool.name,
]);
