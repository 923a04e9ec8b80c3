import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Each takes 10 s or more. One that begins last runs alone at the end, on one core. */
const long = [
  'test/simulation/planted-bugs.test.ts',
  'test/evals/eval-command.test.ts',
  'test/actors/tracker/bd-contract.test.ts',
  'test/model-based/paths.test.ts',
  'test/cli/agent-server.test.ts',
  'test/cli/agent.test.ts',
  'test/disk/power-loss.test.ts',
  'test/acceptance/git.test.ts',
  'test/cli/run-many.test.ts',
  'test/model-based/commands.test.ts',
  'test/security/git-boundary.test.ts',
  'test/actors/assistants/assistants.test.ts',
  'test/actors/workspace/without-git.test.ts',
  'test/acceptance/hostile-model.test.ts',
  'test/bench/benches.test.ts',
  'test/actors/workspace/travel.test.ts',
  'test/crash/crash-loop.test.ts',
  'test/actors/mcp/hostile.test.ts',
  'test/actors/assistants/acp.test.ts',
  'test/acceptance/sandbox.test.ts',
  'test/docs/demo.test.ts',
  'test/page/page.test.ts',
  'test/page/recording.test.ts',
];

/** Long files first; the others as Vitest sorts them. */
export class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification): boolean =>
      long.includes(relative(this.ctx.config.root, moduleId));
    const sorted = await super.sort(files);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}
