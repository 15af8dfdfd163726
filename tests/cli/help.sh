# Every verb explains itself, with an example.
expect 0 "$heddle" --help
says "usage: heddle VERB"
verbs=$(sed -n '/^verbs:/,/^$/p' "$out" | awk 'NR>1 && NF {print $1}')
[ -n "$verbs" ] || fail "no verbs"
for verb in $verbs; do
  expect 0 "$heddle" "$verb" --help
  says "usage: heddle $verb"
  says "example"
  sed -n '/^example/,$p' "$out" | grep -q "^  .*heddle" || fail "$verb has no example"
  silent
done
