import type { CommandContext } from '../client/command-context.ts';

/** What the shell completes in the place of a word or a value. */
export type Completes = 'task' | 'workflow' | 'file' | 'folder' | 'config_key';

interface FlagBase {
  readonly describe: string;
  /** One letter, for `-f`. */
  readonly short?: string;
  readonly hidden?: true;
  readonly conflicts?: string;
  readonly needs?: string;
  /** The values of the word `action` that take it. Default: all. */
  readonly actions?: readonly string[];
}

/** Takes no value. */
export interface Switch extends FlagBase {
  readonly type: 'switch';
  readonly default?: boolean;
}

interface ValueFlag extends FlagBase {
  /** Shown in the help as `<value>`. */
  readonly value: string;
  /** May be given several times. */
  readonly many?: true;
  readonly completes?: Completes;
}
export interface TextFlag extends ValueFlag {
  readonly type: 'text';
  readonly choices?: readonly string[];
  readonly default?: string;
  /** The name of a second value: the flag gives both in turn. */
  readonly second?: string;
}
export interface NumberFlag extends ValueFlag {
  readonly type: 'number';
  readonly default?: number;
}

export type Flag = Switch | TextFlag | NumberFlag;
export type Flags = Readonly<Record<string, Flag>>;

export interface Word {
  readonly name: string;
  readonly describe: string;
  readonly optional?: true;
  /** Takes all words that are left. */
  readonly many?: true;
  readonly choices?: readonly string[];
  readonly completes?: Completes;
}

/** The flags that every command takes; the help shows those that matter to it. */
export interface Common {
  readonly json: boolean;
  readonly project: string | undefined;
  readonly config: string | undefined;
  readonly start: boolean;
  readonly pager: boolean;
  readonly 'token-file': string | undefined;
}

type ChoiceOf<Declared> = Declared extends { choices: readonly (infer Choice extends string)[] }
  ? Choice
  : string;
type ValueOf<Declared extends Flag> = Declared extends Switch
  ? boolean
  : Declared extends NumberFlag
    ? number
    : ChoiceOf<Declared>;
type FlagArg<Declared extends Flag> = Declared extends { many: true }
  ? readonly ValueOf<Declared>[] | undefined
  : Declared extends { default: boolean | string | number }
    ? ValueOf<Declared>
    : ValueOf<Declared> | undefined;
type WordArg<Declared extends Word> = Declared extends { many: true }
  ? readonly ChoiceOf<Declared>[]
  : Declared extends { optional: true }
    ? ChoiceOf<Declared> | undefined
    : ChoiceOf<Declared>;

/** The values of a command's own words and flags. */
export type OwnArgs<Words extends readonly Word[], Own extends Flags> = {
  readonly [One in Words[number] as One['name']]: WordArg<One>;
} & { readonly [Name in keyof Own]: FlagArg<Own[Name]> };

/** In the order of the help. */
export const groups = {
  tasks: 'Tasks',
  runs: 'Run agents',
  watch: 'Watch and answer',
  work: 'Take the work',
  setup: 'Project and server',
} as const;

export interface Syntax<Words extends readonly Word[], Own extends Flags> {
  readonly name: string;
  readonly words: Words;
  readonly flags: Own;
  /** Advice for an extra word. Default: one task at a time, or the command's help. */
  readonly instead?: string;
}

interface Declaration<Words extends readonly Word[], Own extends Flags> extends Syntax<Words, Own> {
  readonly aliases?: readonly string[];
  readonly group: keyof typeof groups;
  readonly describe: string;
  readonly examples: readonly (readonly [line: string, says: string])[];
  /** It completes a shortened id itself, with the one call that it makes. */
  readonly findsTask?: true;
  /** It says that bd is not installed: each time, or once in a project. */
  readonly notesTracker?: 'once' | 'always';
  /** It may start a paid run: the limits that hold are said once in a project. */
  readonly notesLimits?: boolean;
  /** Common flags that matter to it. Default: json, project. */
  readonly common?: readonly (keyof Common)[];
}

export interface CliCommand extends Declaration<readonly Word[], Flags> {
  readonly run: (context: CommandContext, args: never) => Promise<number>;
}

/** Derives the arguments of `run` from the words and flags. */
export const defineCommand = <const Words extends readonly Word[], const Own extends Flags>(
  command: Declaration<Words, Own> & {
    readonly run: (context: CommandContext, args: Common & OwnArgs<Words, Own>) => Promise<number>;
  },
): CliCommand => command;

export const taskWord = {
  name: 'task_id',
  describe: 'Task id, such as bd-a1b2, or its unique beginning or end',
  completes: 'task',
} as const satisfies Word;

export const taskWords = {
  name: 'task_ids',
  describe: 'Task ids, or their unique beginnings or ends',
  many: true,
  completes: 'task',
} as const satisfies Word;

export const reasonFlag = {
  reason: { type: 'text', value: 'text', describe: 'Reason, kept with the task' },
} as const satisfies Flags;

export const fileFlag = {
  type: 'text',
  value: 'path',
  short: 'F',
  completes: 'file',
  describe: 'Read the description from a file; - is standard input',
} as const satisfies TextFlag;

/** Common flags of commands whose long output a pager shows. */
export const pages = ['json', 'project', 'config', 'pager'] as const;
export const startsServer = ['json', 'project', 'config', 'start'] as const;
/** Common flags of commands that read the configuration, for example to find the tracker. */
export const readsConfig = ['json', 'project', 'config'] as const;
