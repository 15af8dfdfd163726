expect 2 "$heddle" shwo x
complains 'heddle: there is no verb `shwo`, did you mean `show`?'
one_line
expect 2 "$heddle" frobnicate
complains 'heddle: there is no verb `frobnicate`; see `heddle --help`'
