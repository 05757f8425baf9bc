# Completion of weft for bash. tests/packages/completion_test.py compares the words with what weft --help prints.

_weft() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]-} words=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="run devices env doctor settings faults stat help --help --version"
  else
    case $command in
      run)
        # The program, then what completes for that program by itself.
        local first=2
        [ "${COMP_WORDS[2]-}" != -- ] || [ "$COMP_CWORD" -eq 2 ] || first=3
        if declare -F _command_offset >/dev/null; then
          _command_offset "$first"
        elif [ "$COMP_CWORD" -eq "$first" ]; then
          mapfile -t COMPREPLY < <(compgen -c -- "$current")
        else
          mapfile -t COMPREPLY < <(compgen -f -- "$current")
        fi
        return ;;
      help) [ "$COMP_CWORD" -gt 2 ] || words="run devices env doctor settings faults stat help" ;;
      faults)
        case $previous in
          --pid) words=$(_weft_processes) ;;
          check | set) ;;
          *) words="check set clear show --list --pid --help" ;;
        esac ;;
      stat)
        case $previous in
          --interval) ;;
          *) words="$(_weft_processes) --json --interval --help" ;;
        esac ;;
      *) words=--help ;;
    esac
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}

# The processes of this user.
_weft_processes() { ps -u "$(id -u)" -o pid= 2>/dev/null | tr -d ' '; }

complete -F _weft -o default weft
