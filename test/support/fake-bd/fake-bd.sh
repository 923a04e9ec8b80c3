# A bd for tests: asks the host; a planned fault is for a Node process of its own, which can hang, crash or be slow.
# Sourced with: <port> <node> <setup> <faults> <arguments of bd>
port=$1 node=$2 setup=$3 faults=$4
shift 4
planned='[]'
[[ -e $faults ]] && read -r planned <"$faults"
if [[ $planned != '[]' ]] || ! { exec 3<>"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null; then
  exec "$node" "${BASH_SOURCE[0]%.sh}.mjs" "$setup" "$@"
fi
input=
case " $* " in *' --body-file=- '* | *' --description=- '*) IFS= read -r -d '' input ;; esac
cd -P .
{
  printf '%s\0' "$setup" "$PWD" "$$"
  compgen -e
  printf '\0'
  printf '%s\0' "$BD_JSON_ENVELOPE" "$input" "$#" "$@"
} >&3
read -r code <&3
read -r length <&3
[[ $length == 0 ]] || head -c "$length" <&3 >&2
[[ $code == 0 ]] && exec cat <&3
cat <&3
exit "$code"
