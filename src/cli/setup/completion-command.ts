import { exitCodes } from '../output/exit-codes.ts';
import type { Io } from '../output/io.ts';
import { UsageError } from '../words/usage-error.ts';

export type Shell = 'bash' | 'zsh' | 'fish';

/** Readline splits a word at `=`; the words are joined again, and the value alone is replaced. */
const bash = `_agent() {
  local words=() word last i value about all=()
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    last=$((\${#words[@]} - 1))
    if ((last >= 0)) && [[ $word == = && \${words[last]} == --* ]]; then
      words[last]+==
    elif ((last >= 0)) && [[ \${words[last]} == --*= && \${COMP_WORDS[i - 1]} == = ]]; then
      words[last]+=$word
    else
      words+=("$word")
    fi
  done
  word=\${words[\${#words[@]} - 1]}
  COMPREPLY=()
  while IFS=$'\\t' read -r value about; do
    if [[ $value == *:files ]]; then
      while IFS= read -r value; do COMPREPLY+=("$value"); done < <(compgen -f -- "\${word#--*=}")
      continue
    fi
    [[ $word == --*=* ]] && value=\${value#--*=}
    COMPREPLY+=("$value")
    if [[ -n $about ]]; then all+=("$value  ($about)"); else all+=("$value"); fi
  done < <(agent __complete -- "\${words[@]}" 2>/dev/null)
  if [[ \${COMP_TYPE:-9} == 63 && \${#all[@]} -gt 1 ]]; then COMPREPLY=("\${all[@]}"); fi
}
complete -F _agent agent`;

const zsh = `#compdef agent
_agent() {
  local line value about
  local -a described
  while IFS= read -r line; do
    value=\${line%%$'\\t'*}
    about=\${line#*$'\\t'}
    if [[ $value == *:files ]]; then
      _files
    else
      described+=("\${value//:/\\\\:}\${about:+:$about}")
    fi
  done < <(agent __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)
  (( $#described )) && _describe agent described
}
compdef _agent agent`;

const fish = `function __agent_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for line in (agent __complete -- $words[2..] "$current" 2>/dev/null)
        if string match -q '*:files*' -- $line
            __fish_complete_path "$current"
        else
            echo $line
        end
    end
end
complete -c agent -f -a '(__agent_complete)'`;

const scripts: Readonly<Record<Shell, string>> = { bash, zsh, fish };

/** @throws UsageError with --json, which no shell reads */
export const completion = (io: Io, json: boolean, shell: Shell): number => {
  if (json) throw new UsageError('completion prints a script for the shell; leave out --json');
  io.out(scripts[shell]);
  return exitCodes.done;
};
