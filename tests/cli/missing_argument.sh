expect 2 "$heddle" show
complains 'heddle show: TRACE is missing; see `heddle show --help`'
one_line
expect 2 "$heddle" show a b
complains 'heddle show: unexpected argument `b`'
expect 2 "$heddle" show "$traces/lost_update.txt" --range
complains 'heddle show: --range'
one_line
