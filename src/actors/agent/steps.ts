import { z } from 'zod';
import type { Step } from '../store/port.ts';
import { mayChangeFiles } from '../tools/toolbox.ts';
import { createRunSteps, type RunSteps } from './run-steps.ts';
import { createStepLog, type StepLog } from './step-log.ts';
import {
  type CompactionSteps,
  createCompactionSteps,
  createThinkSteps,
  createToolCallSteps,
  type ThinkSteps,
  type ToolCallSteps,
} from './turn-steps.ts';

const promptSchema = z.object({ text: z.string() });

/** The first message of the attempt: the same in every process. */
export interface PromptStep {
  prompt(): string | null;
  keepPrompt(text: string): Promise<void>;
}

/** The steps of the built-in loop. */
export interface TurnSteps extends ThinkSteps, CompactionSteps, ToolCallSteps {}

/**
 * The journaled steps of an attempt: every call of a model, a tool or an assistant. The intent is
 * durable before the call, the result with what follows from it (ADR 0128). A step with a result is
 * never repeated.
 */
export interface Steps extends PromptStep, TurnSteps, RunSteps {}

const callSchema = z.object({ call: z.object({ tool: z.string() }) });

/**
 * The keys of the steps after which the folder may have been another one: calls of tools that change
 * files, and ends of assistants' runs.
 */
export const changesMade = (steps: readonly Step[]): readonly string[] =>
  steps
    .filter(
      ({ key, intent, result }) =>
        result !== null &&
        (key.startsWith('run:') ||
          (key.startsWith('act:') &&
            mayChangeFiles(callSchema.parse(JSON.parse(intent)).call.tool))),
    )
    .map(({ key }) => key);

const createPromptStep = ({ intentOf, writeWithNext }: StepLog): PromptStep => ({
  prompt: () => intentOf('prompt', promptSchema)?.text ?? null,
  keepPrompt: (text) => writeWithNext('prompt', { text }),
});

export const createSteps = async (...from: Parameters<typeof createStepLog>): Promise<Steps> => {
  const log = await createStepLog(...from);
  return {
    ...createPromptStep(log),
    ...createThinkSteps(log),
    ...createCompactionSteps(log),
    ...createToolCallSteps(log),
    ...createRunSteps(log),
  };
};
