"""The shells whose completion asks `koi`; importing this has click answer them with scripts of our own.

A script calls `koi` with the line so far in the environment, and gets lines of a kind and a value. Beside click's kinds
there is `koi`: programs and folders, which the shell lists as it lists files.
"""

from __future__ import annotations

from click.shell_completion import BashComplete, FishComplete, ZshComplete, add_completion_class

PROGRAM = "koi"


@add_completion_class
class KoiBash(BashComplete):
    """Bash from 4.4 on."""

    source_template = r"""
%(complete_func)s() {
  local line value
  COMPREPLY=()
  while IFS= read -r line; do
    value=${line#*,}
    case ${line%%%%,*} in
      plain) COMPREPLY+=("$value") ;;
      koi) compopt -o filenames
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -X '!*.koi' -- "$value"; compgen -d -- "$value") ;;
      dir) compopt -o filenames
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -d -- "$value") ;;
      file) compopt -o filenames
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$value") ;;
    esac
  done < <(COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD %(complete_var)s=bash_complete "$1" 2>/dev/null)
}
complete -o nosort -F %(complete_func)s %(prog_name)s
""".lstrip()


@add_completion_class
class KoiZsh(ZshComplete):
    """Zsh, where `compinit` has been called."""

    source_template = r"""
#compdef %(prog_name)s
%(complete_func)s() {
  local kind value about
  local -a lines described plain
  local -x COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) %(complete_var)s=zsh_complete
  lines=("${(@f)$(${words[1]} 2>/dev/null)}")
  for kind value about in "${lines[@]}"; do
    case $kind in
      plain) if [[ $about == _ ]]; then plain+=("$value"); else described+=("$value:$about"); fi ;;
      koi) _files -g '*.koi' ;;
      dir) _files -/ ;;
      file) _files ;;
    esac
  done
  (( $#described )) && _describe -V koi described -U
  (( $#plain )) && compadd -U -V koi -a plain
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  %(complete_func)s "$@"
else
  compdef %(complete_func)s %(prog_name)s
fi
""".lstrip()


@add_completion_class
class KoiFish(FishComplete):
    """Fish from 3 on."""

    source_template = r"""
function %(complete_func)s
  set -l words (commandline -opc)
  set -lx COMP_WORDS (commandline -cp)
  set -lx COMP_CWORD (commandline -ct)
  set -lx %(complete_var)s fish_complete
  for line in ($words[1] 2>/dev/null)
    set -l found (string split -m 1 , -- $line)
    switch $found[1]
      case plain
        echo $found[2]
      case koi
        __fish_complete_suffix .koi
      case dir
        __fish_complete_directories $found[2]
      case file
        __fish_complete_path $found[2]
    end
  end
end
complete --no-files --keep-order --command %(prog_name)s --arguments '(%(complete_func)s)'
""".lstrip()


SHELLS = {shell.name: shell for shell in (KoiBash, KoiZsh, KoiFish)}
