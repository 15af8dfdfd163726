expect 0 "$heddle" --version
says "heddle "
lines 1
silent
