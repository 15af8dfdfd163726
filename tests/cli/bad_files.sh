# What is no trace: one line that says what and where, status 2.
mkdir folder
mkfifo pipe
: >empty
cp "$heddle" program
echo "hello world" >prose
for verb in show stats export import; do
  expect 2 "$heddle" $verb nowhere
  complains "heddle: nowhere: cannot open: No such file or directory"
  one_line
  expect 2 "$heddle" $verb folder
  complains "heddle: folder: is a directory"
  one_line
  expect 2 timeout 300 "$heddle" $verb pipe
  complains "heddle: pipe: is a pipe"
  one_line
  expect 2 "$heddle" $verb empty
  complains "heddle: empty: is empty"
  one_line
  expect 2 "$heddle" $verb program
  complains "heddle: program: not a trace"
  one_line
  expect 2 "$heddle" $verb prose
  complains "heddle: prose: not a trace"
  one_line
done
ls *.heddle 2>/dev/null && fail "import left a file"
true
