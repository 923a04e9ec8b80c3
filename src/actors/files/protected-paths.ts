/**
 * `held`: agents cannot write it, and it is never saved from a worktree. `shown`: agents may write
 * it; it is saved on the attempt's branch, comes first in `agent diff`, and is in nobody's folder
 * until a person merges it.
 */
export type Protection = 'held' | 'shown';

export interface ProtectedPath {
  /**
   * The name of a file, or of a folder with its whole content, at any depth; `*` stands for any
   * beginning.
   */
  readonly name: string;
  readonly protection: Protection;
  readonly reason: string;
}

const protect = (protection: Protection, reason: string, names: string): readonly ProtectedPath[] =>
  names.split(' ').map((name) => ({ name, protection, reason }));

/**
 * Names that a program runs or trusts because it finds them in a project. A folder is protected as
 * a whole: a link in its place would lead around a longer path. Ordinary code (Makefile,
 * package.json, build scripts) is not here.
 */
export const protectedPaths: readonly ProtectedPath[] = [
  ...protect('held', 'git runs the programs that its settings and hooks name', '.git'),
  ...protect('held', 'git takes repositories and their folders from it', '.gitmodules'),
  ...protect('held', 'settings of these version controls name programs to run', '.hg .jj .sl .svn'),
  ...protect('held', 'the tracker: an agent must not close tasks by writing files', '.beads'),
  ...protect('held', 'rules for the agents of this server', '.agent'),
  ...protect('held', 'an assistant starts the servers that it names', '.mcp.json'),
  ...protect(
    'held',
    'an assistant takes settings, hooks, extensions or permissions from it',
    '.agents .aider.conf.yml .aider.model.settings.yml .amazonq .amp .augment .claude .claude.json .cline .codex .continue .copilot ' +
      '.crush .crush.json .cursor .factory .gemini .goose .junie .kilocode .kiro .opencode .openhands .pi .qwen .roo .roomodes ' +
      '.trae .windsurf crush.json opencode.json opencode.jsonc',
  ),
  ...protect(
    'held',
    'an editor runs tasks, or takes programs to run, from it',
    '*.code-workspace .fleet .helix .idea .theia .vs .vscode .zed',
  ),
  ...protect(
    'held',
    'an editor runs its commands when a file beside it is opened',
    '.dir-locals.el .dir-locals-2.el .exrc .lazy.lua .local.vimrc .lvimrc .nvim.lua .nvimrc .vimrc _exrc _vimrc',
  ),
  ...protect(
    'held',
    'a shell with direnv or autoenv runs it when somebody enters the folder',
    '.autoenv .autoenv.zsh .devenv .direnv .envrc',
  ),
  ...protect('held', 'git runs its files as hooks', '.githooks .husky'),
  ...protect('held', 'keys and commands of ssh, where the project is a home folder', '.ssh'),

  ...protect(
    'shown',
    'workflows with the secrets of the project; orders and servers of assistants',
    '.github',
  ),
  ...protect(
    'shown',
    'a build server runs it with the secrets of the project',
    '.buildkite .circleci .drone.yml .forgejo .gitea .gitlab .gitlab-ci.yml .travis.yml .woodpecker .woodpecker.yml ' +
      'Jenkinsfile azure-pipelines.yml bitbucket-pipelines.yml',
  ),
  ...protect(
    'shown',
    'assistants take its text for orders',
    '.clinerules .cursorrules .goosehints .roorules .rules .windsurfrules AGENT.md AGENTS.md AGENTS.override.md CLAUDE.local.md ' +
      'CLAUDE.md GEMINI.md QWEN.md WARP.md',
  ),
  ...protect('shown', 'git chooses filters, diff and merge programs by it', '.gitattributes'),
  ...protect('shown', 'git-lfs takes servers and programs from it', '.lfsconfig'),
  ...protect('shown', 'git obeys it where your own settings include it', '.gitconfig'),
  ...protect(
    'shown',
    'a manager of git hooks runs what it names',
    '.lefthook .lefthook-local.yml .lefthook.json .lefthook.toml .lefthook.yaml .lefthook.yml .pre-commit-config.yaml ' +
      '.pre-commit-hooks.yaml lefthook-local.yml lefthook.json lefthook.toml lefthook.yaml lefthook.yml',
  ),
  ...protect(
    'shown',
    'shells and programs take their environment from it',
    '.Renviron .env .env.local',
  ),
  ...protect(
    'shown',
    'a package manager takes registries, programs or code of its own from it',
    '.bundle .cargo .mvn .npmrc .pip .pnpmfile.cjs .pnpmfile.mjs .yarn .yarnrc .yarnrc.yml bunfig.toml',
  ),
  ...protect(
    'shown',
    'a manager of tools chooses programs, or runs hooks, by it',
    '.config .mise .mise.local.toml .mise.toml .tool-versions mise.local.toml mise.toml',
  ),
  ...protect(
    'shown',
    'rustup takes the compiler from it, from any folder',
    'rust-toolchain rust-toolchain.toml',
  ),
  ...protect(
    'shown',
    'an editor or a person who presses run starts the programs that it names',
    '.run .vimspector.json',
  ),
  ...protect('shown', 'an assistant or editor may start the servers that it names', 'mcp.json'),
  ...protect(
    'shown',
    'a checker or test runner loads the code that it names',
    '.pylintrc .rspec pylintrc',
  ),
  ...protect('shown', 'ansible takes plugins and programs from it', 'ansible.cfg'),
  ...protect(
    'shown',
    'node loads it where packages are installed with yarn',
    '.pnp.cjs .pnp.loader.mjs',
  ),
  ...protect(
    'shown',
    'an editor builds and starts the container that it describes',
    '.devcontainer .devcontainer.json .gitpod.yml .idx',
  ),
  ...protect('shown', 'a build tool runs the programs that it names', '.bazelrc .buckconfig'),
  ...protect(
    'shown',
    'an interpreter or debugger runs it at its start',
    '.Rprofile .erlang .gdbinit .ghci .iex.exs .irbrc .lldbinit .ocamlinit .octaverc .pdbrc .pryrc',
  ),
  ...protect(
    'shown',
    'a shell runs it, or a program takes credentials from it, where the project is a home folder',
    '.bash_login .bash_profile .bashrc .curlrc .netrc .profile .wgetrc .zlogin .zprofile .zshenv .zshrc',
  ),
];

/** Characters that HFS+ leaves out of a name, so that `.g<U+200C>it` is `.git` there. */
export const ignoredByHfs = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g;

/**
 * The name as some file system reads it: case folded, ignored characters removed, without the ends
 * that NTFS drops.
 */
const foldName = (part: string): string => {
  // No file system has longer names, and NFKC sorts combining marks in quadratic time.
  const name = part.slice(0, 1_024).replace(ignoredByHfs, '').normalize('NFKC').toLowerCase();
  const known = (name.split(':', 1)[0] ?? '').replace(/(?<![. ])[. ]+$/, '');
  return /^git~\d+$/.test(known) ? '.git' : known;
};

const protectedByName: ReadonlyMap<string, ProtectedPath> = new Map(
  protectedPaths.map((path) => [foldName(path.name), path]),
);

const protectedByEnding = protectedPaths.filter(({ name }) => name.startsWith('*'));

const findPart = (part: string): ProtectedPath | undefined => {
  const name = foldName(part);
  return (
    protectedByName.get(name) ?? protectedByEnding.find((path) => name.endsWith(path.name.slice(1)))
  );
};

/** The protection of a relative path: `held` wins over `shown`, an outer name over an inner one. */
export const protectionOf = (
  path: string,
): { readonly name: string; readonly protection: Protection } | null => {
  const found = path.split(/[/\\]/).flatMap((part) => findPart(part) ?? []);
  const first = found.find(({ protection }) => protection === 'held') ?? found[0];
  return first === undefined ? null : { name: first.name, protection: first.protection };
};
