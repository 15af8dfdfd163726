# The script completes verbs, options, values and files.
expect 0 "$heddle" completion bash
. "$out" || fail "the script does not load"
complete_words() {
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  COMPREPLY=()
  _heddle
  printf '%s\n' "${COMPREPLY[@]}" >"$out"
}
complete_words heddle sh
says "show"
complete_words heddle show --th
says "--thread"
lines 1
complete_words heddle export --format s
says "std"
lines 1
touch my.heddle
complete_words heddle show my
says "my.heddle"
complete_words heddle record -- my
says "my.heddle"
expect 2 "$heddle" completion tcsh
one_line
