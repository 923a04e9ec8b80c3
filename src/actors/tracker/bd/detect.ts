import { bdFailure, classifyBdText } from './failure.ts';
import { type BdProgram, programAt, programOnPath } from './program.ts';
import { runBd } from './runner.ts';
import { isSupported, oldestSupported, parseVersion, type Version } from './version.ts';

export type Detection =
  | { readonly state: 'absent'; readonly detail: string }
  | { readonly state: 'broken'; readonly program: BdProgram; readonly detail: string }
  /** `version` is null when it could not be read. */
  | {
      readonly state: 'ok';
      readonly program: BdProgram;
      readonly version: Version | null;
      readonly detail: string;
    };

export interface DetectOptions {
  readonly cwd: string;
  /** Absolute; null: searched on PATH. */
  readonly bdPath: string | null;
  readonly processEnv: NodeJS.ProcessEnv;
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

export const locateBd = ({
  bdPath,
  processEnv,
}: Pick<DetectOptions, 'bdPath' | 'processEnv'>): BdProgram | null =>
  bdPath === null ? programOnPath('bd', processEnv) : programAt(bdPath);

const describeVersion = (version: Version): string =>
  isSupported(version)
    ? `bd ${version.join('.')}`
    : `bd ${version.join('.')}, which is older than ${oldestSupported}: tasks are marked by status, not claimed; install a newer one`;

/** Runs `bd version`, which needs no database and creates none. */
export const detectBd = async (options: DetectOptions): Promise<Detection> => {
  const { cwd, bdPath, env, timeoutMs } = options;
  const program = locateBd(options);
  if (program === null)
    return {
      state: 'absent',
      detail:
        bdPath === null
          ? 'bd is not on PATH'
          : `there is no program at ${bdPath} (tracker.bd_path)`,
    };
  const output = await runBd({ file: program.path, args: ['version'], cwd, env, timeoutMs });
  if (output.exitCode === 0) {
    const version = parseVersion(output.stdout);
    const detail = version === null ? 'bd of an unknown version' : describeVersion(version);
    return { state: 'ok', program, version, detail };
  }
  const { words } = classifyBdText(output.stderr || output.stdout);
  const why = output.timedOut ? bdFailure('timeout', 'it did not answer in time').words : words;
  const ended = output.startError ?? `exit code ${output.exitCode ?? output.signal}`;
  return { state: 'broken', program, detail: `bd is installed but does not work: ${why || ended}` };
};
