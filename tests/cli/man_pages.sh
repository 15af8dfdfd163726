# Every verb has a page in both formats, with all of its options.
expect 0 "$heddle" --help
verbs=$(sed -n '/^verbs:/,/^$/p' "$out" | awk 'NR>1 && NF {print $1}')
for verb in $verbs; do
  page=$build/man/heddle-$verb
  [ -s "$page.1" ] && [ -s "$page.md" ] || fail "no page for $verb"
  expect 0 "$heddle" "$verb" --help
  for option in $(grep -o '^  \(-[a-z], \)\?--[a-z-]*' "$out" | grep -o -e '--[a-z-]*'); do
    grep -qF -e "$option" "$page.md" || fail "$page.md lacks $option"
    grep -qF -e "${option//-/\\-}" "$page.1" || fail "$page.1 lacks $option"
  done
  grep -q '^\.TH HEDDLE' "$page.1" || fail "$page.1 has no title"
done
expect 0 "$heddle" man show
same "$out" "$build/man/heddle-show.md"
if command -v groff >/dev/null; then
  for page in "$build"/man/*.1; do
    expect 0 groff -man -ww -Tutf8 "$page"
    silent
  done
fi
