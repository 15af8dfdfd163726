static int count;
int next_number() {
  return ++count;
}
