import { z } from 'zod';
import { isJsonObject } from '../json.ts';
import { roles } from '../task.ts';

/** A workflow as data: `configs/workflows/*.yml`. docs/guides/workflows.md describes each key. */

export const workflowKeySchema = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,39}$/, 'must be lower-case letters, digits and dashes');
const longText = z.string().min(1).max(8_000);
const line = z.string().min(1).max(300);
export const workflowPathSchema = z
  .string()
  .min(1)
  .max(300)
  .refine((value) => !value.startsWith('/') && !value.split('/').includes('..'), {
    message: 'must be a path inside the project',
  });

const key = workflowKeySchema;
const path = workflowPathSchema;

const stepSchema = z.strictObject({
  id: key,
  by: z.enum([...roles, 'person']).describe('the role that does it; person: a person closes it'),
  title: line,
  task: longText.describe('what to do'),
  when: line.optional().describe('selection criterion: the step is done only if it holds'),
  needs: z.array(key).max(20).default([]).describe('steps of this phase that come before'),
  leaves: z.array(path).max(20).default([]).describe('files and folders (with a slash) it writes'),
  ends_with: z
    .enum(['verdict', 'recommendation'])
    .optional()
    .describe('the word that its results must end with'),
  investigators: z.boolean().default(false).describe('one task for each investigator'),
  verify: z.boolean().default(false).describe('the verify commands of the workflow must pass'),
});
export type WorkflowStep = z.infer<typeof stepSchema>;

/** A person closes a step without an attempt: there is no diff and no result to check. */
const notForPersons = ({ by, leaves, ends_with, verify, investigators }: WorkflowStep) =>
  by !== 'person'
    ? []
    : [
        ...(leaves.length > 0 ? ['leaves'] : []),
        ...(ends_with === undefined ? [] : ['ends_with']),
        ...(verify ? ['verify'] : []),
        ...(investigators ? ['investigators'] : []),
      ];

const of = key.describe('the step whose work is read');
const reports = z.array(path).min(1).max(20);

const givenCheck = (input: unknown): string =>
  isJsonObject(input) && typeof input['check'] === 'string'
    ? `is ${JSON.stringify(input['check'].slice(0, 40))}; `
    : '';

const checkSchema = z.discriminatedUnion(
  'check',
  [
    z.strictObject({ check: z.literal('artifacts'), of }),
    z.strictObject({ check: z.literal('verdict'), of }),
    z.strictObject({
      check: z.literal('coverage'),
      of,
      minimum: z.number().min(0).max(100),
      reports,
    }),
    z.strictObject({ check: z.literal('tests'), of, minimum: z.int().min(1).default(1), reports }),
    z.strictObject({
      check: z.literal('sections'),
      of,
      path,
      sections: z.array(line).min(1).max(30),
    }),
    z.strictObject({ check: z.literal('answers'), of, path, questions: path }),
    z.strictObject({ check: z.literal('findings'), of, path, section: line }),
    z.strictObject({ check: z.literal('next_steps'), of, path, section: line }),
    z.strictObject({ check: z.literal('only_changes'), allowed: z.array(path).min(1).max(20) }),
  ],
  {
    error: ({ input }) =>
      `${givenCheck(input)}must be one of artifacts, verdict, coverage, tests, sections, answers, findings, next_steps, only_changes`,
  },
);
export type WorkflowCheck = z.infer<typeof checkSchema>;

const gateSchema = z.strictObject({ name: line, checks: z.array(checkSchema).min(1).max(20) });

const phaseSchema = z.strictObject({
  number: z.int().min(0).max(99),
  name: line,
  steps: z.array(stepSchema).min(1).max(30),
  gates: z.array(gateSchema).max(10).default([]),
  repeat: z.array(key).max(30).optional().describe('steps of another round; default: all'),
  rounds: z.int().min(1).max(10).default(3).describe('how often the phase may be tried'),
});
export type WorkflowPhase = z.infer<typeof phaseSchema>;

const level = z.strictObject({
  investigators: z.int().min(1).max(16),
  max_turns: z.int().min(1).max(1_000),
});

export const workflowDefinitionSchema = z
  .strictObject({
    name: key,
    extends: line.optional(),
    version: z.string().regex(/^\d+\.\d+\.\d+$/, 'must be a version such as 1.0.0'),
    description: longText,
    thoroughness: z.strictObject({ quick: level, medium: level, deep: level }).optional(),
    phases: z.array(phaseSchema).min(1).max(20),
  })
  .superRefine(({ phases }, { addIssue }) => {
    const known = new Set<string>();
    phases.forEach(({ number, steps }, at) => {
      const before = phases[at - 1]?.number ?? 0;
      if (number < before)
        addIssue({
          code: 'custom',
          path: ['phases', at, 'number'],
          message: `is ${number}, after phase ${before}; phases stand in their order`,
        });
      steps.forEach((each, step) => {
        const { id } = each;
        for (const name of notForPersons(each))
          addIssue({
            code: 'custom',
            path: ['phases', at, 'steps', step, name],
            message: 'is not for a step of a person, which leaves nothing that can be checked',
          });
        if (known.has(id))
          addIssue({
            code: 'custom',
            path: ['phases', at, 'steps', step, 'id'],
            message: `is ${id} a second time; each step has an id of its own`,
          });
        known.add(id);
      });
    });
  });
export type WorkflowDefinition = z.infer<typeof workflowDefinitionSchema>;
