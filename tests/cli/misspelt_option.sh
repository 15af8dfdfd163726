expect 2 "$heddle" show --tread 1 "$traces/lost_update.txt"
complains 'heddle show: unknown option `--tread`, did you mean `--thread`?'
one_line
expect 2 "$heddle" stats --jsn "$traces/lost_update.txt"
complains 'did you mean `--json`?'
expect 2 "$heddle" --vesion
complains 'did you mean `--version`?'
expect 2 "$heddle" show --txt
complains 'did you mean `--text`?'
