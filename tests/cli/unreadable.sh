# Root may read anything: then there is nothing to test.
cp "$traces/lost_update.txt" secret
mkdir closed
cp "$traces/lost_update.txt" closed/trace
chmod 000 secret closed
if [ "$(id -u)" != 0 ]; then
  expect 2 "$heddle" show secret
  complains "heddle: secret: cannot open: Permission denied"
  expect 2 "$heddle" show closed/trace
  complains "heddle: closed/trace: cannot open: Permission denied"
fi
expect 2 "$heddle" export "$traces/lost_update.txt" -o nowhere/out
complains "heddle: nowhere/out: cannot create: No such file or directory"
expect 2 "$heddle" import "$traces/lost_update.txt" -o nowhere/out
complains "heddle: nowhere/out: cannot create: No such file or directory"
one_line
