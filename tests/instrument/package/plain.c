int untouched = 1;
int not_instrumented(void) {
  return untouched;
}
