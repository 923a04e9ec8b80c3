import { expect, test } from 'vitest';
import {
  changesFiles,
  isRepeatable,
  readsOnly,
  toolNames,
} from '../../../src/actors/tools/toolbox.ts';

test('tools that change files, and so wait for the shared folder', () => {
  expect(toolNames.filter(changesFiles)).toEqual(['write', 'edit', 'bash']);
});

test('tools that only read, and so run at once', () => {
  expect(toolNames.filter(readsOnly)).toEqual(['read', 'grep', 'find']);
});

test('tools that are called again after a crash without asking a person', () => {
  expect(toolNames.filter(isRepeatable)).toEqual([
    'read',
    'write',
    'grep',
    'find',
    'ask',
    'finish',
  ]);
});

test('a tool that does not exist is neither repeated nor run with others', () => {
  expect([isRepeatable('launch'), readsOnly('launch')]).toEqual([false, false]);
});
