expect 2 "$heddle" show "$traces/lost_update.txt" --range 9..3
complains '--range: `9..3` is not a range'
one_line
expect 2 "$heddle" show "$traces/lost_update.txt" --kind rr
complains '--kind: there is no kind of event `rr`, did you mean `r`?'
expect 2 "$heddle" export "$traces/lost_update.txt" --format pdf
complains "heddle export: --format"
one_line
